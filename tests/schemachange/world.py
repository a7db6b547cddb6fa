"""The database that a case begins with: a table, its twin with the same rows, and parents of some of them."""

import shutil
from contextlib import closing
from dataclasses import dataclass
from functools import cache, partial

from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from tests.schemachange.case import Case
from tests.support.databases import MakePlace
from tests.support.models import Build
from tests.support.nodes import Place

# Rows whose keys are given to writers, and of these as many again that only their parents are written.
ROWS = 120
PARENTS = 40
PARENTS_FROM = 50_000
EXPIRY_MS = 60_000


def open_quiet(place: Place, name: str) -> Node:
    """A node that does nothing by itself."""
    node = open_node(place.location, place.catalog, name, EXPIRY_MS)
    node.jobs.paused = True
    node.maintenance.paused = True
    return node


@cache
def builder(columns: str, setup: tuple[str, ...], crowd: int) -> Build:
    """Cases that begin with the same database have the same builder, so that it is built once."""
    return partial(build, columns, setup, crowd)


def build(columns: str, setup: tuple[str, ...], crowd: int, place: Place) -> None:
    with closing(open_quiet(place, "builder")) as node, closing(Session(node)) as session:
        session.execute("create table p (id int primary key)")
        for table in ("t", "w"):
            session.execute(f"create table {table} ({columns})")
        last = PARENTS_FROM + crowd * PARENTS - 1
        session.execute(f"insert into p select i from generate_series({PARENTS_FROM}, {last}) g(i)")
        names = "id, a, b, c, n, p"
        few = "select i, 10 * i, 'b' || i, i % 5, i"
        # Some rows in files, some in the catalog.
        node.parts.inline_rows_max = 0
        session.execute(f"insert into t ({names}) {few}, null from generate_series(1, {crowd * ROWS}) g(i)")
        node.parts.inline_rows_max = 5_000
        session.execute(f"insert into t ({names}) {few}, i from generate_series({PARENTS_FROM}, {last}) g(i)")
        for statement in setup:
            session.execute(statement)
        session.execute(f"insert into w ({names}) select {names} from t")


@dataclass
class Worlds:
    """Gives every run a database of its own."""

    make_place: MakePlace
    _made: int = 0

    def make(self, case: Case, crowd: int = 1) -> Place:
        self._made += 1
        name = f"{case.name.replace(' ', '_')}_{self._made}"
        return self.make_place(name, builder(case.columns, tuple(case.setup), crowd))

    def forget(self, place: Place) -> None:
        """Deletes the files of a run that are not needed any more."""
        shutil.rmtree(place.data, ignore_errors=True)

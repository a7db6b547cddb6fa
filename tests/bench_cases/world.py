"""The database that a case begins with: a table, its twin with the same rows, and parents of some of them."""

import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from seachange.engine.node import Node
from seachange.engine.opening import open_node
from seachange.engine.session import Session
from tests.bench_cases.case import Case
from tests.support.nodes import Place

# Rows whose keys are given to writers, and of these as many again that only their parents are written.
ROWS = 120
PARENTS = 40
PARENTS_FROM = 50_000
EXPIRY_MS = 60_000


def open_quiet(place: Place, name: str) -> Node:
    """A node that does nothing by itself."""
    node = open_node(place.data, place.catalog, name, EXPIRY_MS)
    node.jobs.paused = True
    node.keeper.paused = True
    return node


def build(place: Place, case: Case, crowd: int = 1) -> None:
    with closing(open_quiet(place, "builder")) as node, closing(Session(node)) as session:
        session.execute("create table p (id int primary key)")
        for table in ("t", "w"):
            session.execute(f"create table {table} ({case.columns})")
        last = PARENTS_FROM + crowd * PARENTS - 1
        session.execute(f"insert into p select i from generate_series({PARENTS_FROM}, {last}) g(i)")
        columns = "id, a, b, c, n, p"
        few = "select i, 10 * i, 'b' || i, i % 5, i"
        # Some rows in files, some in the catalog.
        node.parts.inline_rows_max = 0
        session.execute(f"insert into t ({columns}) {few}, null from generate_series(1, {crowd * ROWS}) g(i)")
        node.parts.inline_rows_max = 5_000
        session.execute(f"insert into t ({columns}) {few}, i from generate_series({PARENTS_FROM}, {last}) g(i)")
        for statement in case.setup:
            session.execute(statement)
        session.execute(f"insert into w ({columns}) select {columns} from t")


@dataclass
class Worlds:
    """Gives every run a database of its own; on SQLite a copy of the first that its case had."""

    make_place: Callable[[str], Place]
    folder: Path
    _built: dict[tuple[str, int], Place] = field(default_factory=dict)
    _made: int = 0

    def make(self, case: Case, crowd: int = 1) -> Place:
        self._made += 1
        place = self.make_place(f"{case.name.replace(' ', '_')}_{self._made}")
        if place.catalog is not None:
            build(place, case, crowd)
            return place
        model = self._built.get((case.name, crowd))
        if model is None:
            model = self._built[case.name, crowd] = Place(self.folder / f"model_{self._made}")
            build(model, case, crowd)
        shutil.copytree(model.data, place.data, dirs_exist_ok=True)
        return place

    def forget(self, place: Place) -> None:
        """What a run has left, when nobody will look at it."""
        shutil.rmtree(place.data, ignore_errors=True)

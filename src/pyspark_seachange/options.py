"""The options of the data source, checked, and the errors that Spark shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import seachange
from seachange import errors
from seachange.engine.api import Connection

# By their names in lower case, as Spark passes them.
_KNOWN = {
    "data": "the folder or URL of the database",
    "path": "the table, which load(), save() and table() pass",
    "catalog": "the URL of the catalog",
    "database": "the database",
    "user": "the role",
    "local": "the local folder of an object store",
    "as_of": "a sequence number or moment to read at",
    "layout": "a shape to read in",
    "columns": "the columns to read",
    "pushfilters": "true: filters are evaluated by the source too",
    "merge_keys": "the key columns of an upsert",
    "writer_id": "the name of a stream that writes",
    "batch_id": "the number of a batch, with writer_id",
    "checkpointlocation": "Spark's option",
    "queryname": "Spark's option",
    "changes": "true: the rows of a stream are changes",
    "feed": "the name of the feed that keeps the history of a stream",
    "startingposition": "where a new stream starts",
    "schemachanges": "what a stream does at a schema change",
    "maxrowsperbatch": "limit of a micro-batch",
    "maxcommitsperbatch": "limit of a micro-batch",
}


class SeachangeError(Exception):
    """An error of the database, with its SQLSTATE and hint in the text: all that crosses Spark is the text."""


@contextmanager
def shown_errors() -> Iterator[None]:
    try:
        yield
    except errors.Error as problem:
        hint = f"\nHINT: {problem.hint}" if problem.hint else ""
        raise SeachangeError(f"{problem} (SQLSTATE {problem.sqlstate}){hint}") from problem


@dataclass(frozen=True, slots=True)
class SourceOptions:
    data: str
    table: str
    catalog: str | None
    database: str
    user: str
    local: str | None
    given: Mapping[str, str]

    def text(self, name: str) -> str:
        """Empty if it is not given."""
        return self.given.get(name, "")

    def names(self, name: str) -> tuple[str, ...]:
        return tuple(each.strip() for each in self.text(name).split(",") if each.strip())

    def flag(self, name: str) -> bool:
        value = self.text(name).lower() or "false"
        if value not in ("true", "false"):
            raise errors.InvalidParameterValue(detail=f"option {name} is neither true nor false: {value}")
        return value == "true"

    def count(self, name: str) -> int | None:
        value = self.text(name)
        if not value:
            return None
        if not value.isdecimal() or not int(value):
            raise errors.InvalidParameterValue(detail=f"option {name} is not a positive number: {value}")
        return int(value)

    def connect(self) -> Connection:
        return seachange.connect(self.data, self.catalog, self.user, self.database, autocommit=True, local=self.local)


def read_options(options: Mapping[str, str]) -> SourceOptions:
    given = {name.lower(): value for name, value in options.items()}
    unknown = sorted(set(given) - set(_KNOWN))
    if unknown:
        raise errors.InvalidParameterValue(
            detail=f"the data source seachange has no option {unknown[0]}; it has {', '.join(sorted(_KNOWN))}"
        )
    for name, needed in (("data", '.option("data", FOLDER)'), ("path", 'load("table") or save("table")')):
        if not given.get(name):
            raise errors.InvalidParameterValue(detail=f"the data source seachange needs {_KNOWN[name]}: {needed}")
    return SourceOptions(
        given["data"],
        given["path"],
        given.get("catalog"),
        given.get("database", "seachange"),
        given.get("user", "seachange"),
        given.get("local"),
        given,
    )

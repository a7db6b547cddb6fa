"""A copy of a table, as the documents of its rows, that its change feed keeps up to date."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from seachange.engine.session.session import Session

Event = dict[str, Any]
COLUMNS = ("seq", "committed_at", "ordinal", "relation", "op", "before", "after", "schema")


@contextmanager
def as_of(session: Session, seq: int) -> Iterator[None]:
    session.execute(f"set seachange.as_of = {seq}")
    try:
        yield
    finally:
        session.execute("set seachange.as_of = ''")


def read_documents(session: Session, name: str, seq: int) -> Counter[str]:
    with as_of(session, seq):
        return Counter(row[0] for row in session.execute(f"select cast(to_jsonb(x) as text) from {name} x").rows)


def read_events(session: Session, names: Sequence[str], since: int, until: int) -> list[Event]:
    found = session.execute("select * from seachange.feed($1, since => $2, until => $3)", [list(names), since, until])
    return [dict(zip(COLUMNS, row, strict=True)) for row in found.rows]


@dataclass(slots=True)
class Copy:
    """`columns` are the names by id; `rows` the documents, None where there is no table."""

    session: Session
    columns: dict[int, str]
    rows: Counter[str] | None

    def apply(self, events: Sequence[Event]) -> None:
        """All events of one commit."""
        for place, event in enumerate(events):
            if event["op"] == "schema":
                self._define(event, events[place + 1 :])
            else:
                self._change(event)

    def _change(self, event: Event) -> None:
        assert self.rows is not None
        before, after = event["before"], event["after"]
        assert (before is None, after is None) == {
            "insert": (True, False),
            "update": (False, False),
            "delete": (False, True),
        }[event["op"]]
        if before is not None:
            assert self.rows[before] > 0, (before, self.rows)
            self.rows[before] -= 1
        if after is not None:
            self.rows[after] += 1

    def _define(self, event: Event, later: Sequence[Event]) -> None:
        schema = json.loads(event["schema"])
        if schema is None:
            self.columns, self.rows = {}, None
            return
        before, self.columns = self.columns, {column["id"]: column["name"] for column in schema["columns"]}
        if self.rows is None:
            self.rows = Counter()
        if any(column["rows"] == "computed" for column in schema["columns"]):
            # What the change has computed is read as of its commit, and the other changes of the commit are undone.
            self.rows = read_documents(self.session, f"{schema['schema']}.{schema['table']}", event["seq"])
            for change in reversed(later):
                if change["after"] is not None:
                    self.rows[change["after"]] -= 1
                if change["before"] is not None:
                    self.rows[change["before"]] += 1
            return
        self.rows = Counter(
            {_shown(_changed(json.loads(row), before, schema["columns"])): n for row, n in self.rows.items() if n}
        )


def _changed(row: dict[str, Any], before: dict[int, str], columns: list[dict[str, Any]]) -> dict[str, Any]:
    made = {}
    for column in columns:
        if column["rows"] == "constant":
            value = column["value"]
            made[column["name"]] = (
                int(value) if value is not None and column["type"] in ("integer", "bigint") else value
            )
        else:
            made[column["name"]] = row[before[column["id"]]]
    return made


def _shown(row: dict[str, Any]) -> str:
    ordered = sorted(row.items(), key=lambda item: (len(item[0].encode()), item[0].encode()))
    return (
        "{" + ", ".join(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in ordered) + "}"
    )


def by_commit(events: Sequence[Event]) -> Iterator[list[Event]]:
    """The events of each commit, which are in order and numbered from 1."""
    group: list[Event] = []
    for event in events:
        if group and event["seq"] != group[0]["seq"]:
            assert event["seq"] > group[0]["seq"]
            yield group
            group = []
        group.append(event)
        assert event["ordinal"] == len(group)
    if group:
        yield group

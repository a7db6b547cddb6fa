"""Values of every type over the wire, as text and in binary, as parameters, results and by COPY; then in a table whose
rows are rewritten, and in one that was restored from a backup: they come out as they went in."""

from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.pq import ExecStatus, Format

from seachange.engine.database.backup import back_up, restore
from seachange.values.binary_form import encode_binary
from seachange.values.output_format import show_text
from tests.sql.test_types_properties import CHECKED, NAMES, SAMPLES, TYPES, columns
from tests.support.serving import serving

ROWS = st.lists(st.tuples(*(st.none() | SAMPLES[t] for t in TYPES)), min_size=3, max_size=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("wire")


@pytest.fixture(scope="module")
def wire(folder):
    with serving(folder / "db") as served, psycopg.connect(served.url, autocommit=True) as connection:
        for name in ("t", "u"):
            connection.execute(f"create table {name} (id bigint primary key, {columns()})")
        yield connection


def encoded(row: tuple[Any, ...], form: Format) -> list[bytes | None]:
    return [None if value is None else _encoded(type_, value, form) for type_, value in zip(TYPES, row, strict=True)]


def _encoded(type_: Any, value: Any, form: Format) -> bytes:
    if form is Format.BINARY:
        return bytes(encode_binary(type_, value))
    text = show_text(type_, value)
    assert text is not None
    return text.encode()


def ask(wire: psycopg.Connection[Any], text: str, values: list[bytes | None], form: Format) -> list[list[bytes | None]]:
    # A text tells by itself what it is; of bytes the type has to be told.
    kinds = [type_.oid if form is Format.BINARY else 0 for type_ in TYPES] if values else []
    result = wire.pgconn.exec_params(text.encode(), values, kinds, [form] * len(values), form)
    assert result.status in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK), result.error_message
    return [[result.get_value(row, place) for place in range(result.nfields)] for row in range(result.ntuples)]


def expect(wire: psycopg.Connection[Any], table: str, rows: list[tuple[Any, ...]]) -> None:
    for form in Format.TEXT, Format.BINARY:
        found = ask(wire, f"select {', '.join(NAMES)} from {table} order by id", [], form)
        for row, got in zip(rows, found, strict=True):
            for type_, wanted, field in zip(TYPES, encoded(row, form), got, strict=True):
                assert field == wanted, f"{type_} as {form.name}: {wanted!r} became {field!r}"


@settings(CHECKED, max_examples=2)
@given(ROWS)
def test_over_the_wire(wire, rows):
    marks = ", ".join(f"${i}" for i in range(1, len(TYPES) + 1))
    for form in Format.TEXT, Format.BINARY:
        wire.execute("truncate t, u")
        for number, row in enumerate(rows):
            ask(wire, f"insert into t values ({number}, {marks})", encoded(row, form), form)
        expect(wire, "t", rows)
        option = "format binary" if form is Format.BINARY else "format text"
        with wire.cursor().copy(f"copy t to stdout ({option})") as copy:
            data = b"".join(bytes(part) for part in copy)
        with wire.cursor().copy(f"copy u from stdin ({option})") as copy:
            copy.write(data)
        expect(wire, "u", rows)


def test_values_survive_rewrite_and_restore(wire, folder):
    found: list[tuple[Any, ...]] = []

    @settings(CHECKED, max_examples=1)
    @given(ROWS)
    def draw(rows):
        found.extend(rows)

    draw()
    wire.execute("create table w (id bigint primary key, other int, " + columns() + ")")
    marks = ", ".join(f"${i}" for i in range(1, len(TYPES) + 1))
    for number, row in enumerate(found):
        ask(wire, f"insert into w values ({number}, {-number}, {marks})", encoded(row, Format.BINARY), Format.BINARY)
    wire.execute("alter table w alter other type bigint using other * 2")
    wire.execute("alter table w alter other set not null")
    wire.execute("alter table w alter primary key using columns (other)")
    expect(wire, "w", found)
    back_up(folder / "db", None, folder / "copy")
    restore(folder / "copy", folder / "again", None)
    with serving(folder / "again") as served, psycopg.connect(served.url, autocommit=True) as connection:
        expect(connection, "w", found)

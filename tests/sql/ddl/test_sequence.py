"""CREATE, ALTER and DROP SEQUENCE."""

import pytest

from seachange.model.object_kind import ObjectKind
from seachange.model.statements.object_statements import (
    AlterSequence,
    ChangeOwner,
    CreateSequence,
    DropObjects,
    MoveObject,
    OwnedBy,
    RenameObject,
    SequenceOptions,
)
from tests.sql.ddl.parsing import INTEGER, ST, T, code, name, parse

Q = name("q")


def options(**fields):
    return SequenceOptions(**fields)


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("create sequence q", CreateSequence(Q)),
        (
            "create sequence if not exists s.t as int increment by -2 minvalue -5 maxvalue 5 start with 3 cache 7 cycle"
            " owned by s.t.a",
            CreateSequence(
                ST,
                options(type=INTEGER, increment=-2, minimum=-5, maximum=5, start=3, cache=7, cycle=True),
                OwnedBy(ST, "a"),
                True,
            ),
        ),
        (
            "create sequence q no minvalue no maxvalue no cycle increment 1 start +1 owned by t.a",
            CreateSequence(
                Q,
                options(no_minimum=True, no_maximum=True, cycle=False, increment=1, start=1),
                OwnedBy(T, "a"),
            ),
        ),
        ("alter sequence if exists q restart", AlterSequence(Q, options(restart_at_start=True), None, True)),
        ("alter sequence q restart -5 owned by none",
         AlterSequence(Q, options(restart=-5), OwnedBy(None, None))),
        ("alter sequence q restart with 5 maxvalue 9", AlterSequence(Q, options(restart=5, maximum=9))),
        ("alter sequence q owned by none.a", AlterSequence(Q, owner=OwnedBy(name("none"), "a"))),
        ("alter sequence if exists q rename to r", RenameObject(ObjectKind.SEQUENCE, Q, "r", True)),
        ("alter sequence q set schema s", MoveObject(ObjectKind.SEQUENCE, Q, "s")),
        ("alter sequence q owner to r", ChangeOwner(ObjectKind.SEQUENCE, Q, "r")),
        ("drop sequence if exists q, s.t cascade", DropObjects(ObjectKind.SEQUENCE, (Q, ST), True, True)),
    ],
)  # fmt: skip
def test_sequence_statement_is_read(text, statement):
    assert parse(text) == statement


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("create sequence", "42601"),
        ("create sequence q start 1 start 2", "42601"),
        ("create sequence q minvalue 1 no minvalue", "42601"),
        ("create sequence q owned by a", "42601"),
        ("create sequence q owned by none owned by none", "42601"),
        ("create sequence q restart", "42601"),
        ("create sequence q increment 1.5", "42601"),
        ("create sequence q oops", "42601"),
        ("alter sequence q", "42601"),
        ("create sequence q maxvalue 9223372036854775808", "22003"),
        ("create sequence q maxvalue " + "9" * 30, "22003"),
        ("create sequence q maxvalue " + "9" * 5000, "42601"),
        ("create sequence q as text", "22023"),
        ("create sequence q as mood", "42704"),
        ("create sequence q sequence name r", "42601"),
        ("alter sequence q set logged", "0A000"),
        ("create temp sequence q", "0A000"),
    ],
)
def test_invalid_sequence_statement_is_rejected_with_its_code(text, expected):
    assert code(text) == expected

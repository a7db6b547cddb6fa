"""Types of columns that are given other labels and values."""

from tests.schemachange.case import Case

_SETUP = (
    "create type mood as enum ('sad', 'ok', 'happy')",
    "alter table t add column m mood not null default 'ok'",
    "create index i on t (m)",
)
_SAD = "insert into {t} (id, a, b, c, n) values (90001, 50010, 'x', 1, 90001)"

CASES = (
    Case("add enum value", "alter type mood add value 'meh' before 'ok'", "", setup=_SETUP, at_once=True),
    Case(
        "rename enum value",
        "alter type mood rename value 'ok' to 'fine'",
        "",
        setup=_SETUP,
        at_once=True,
        none=("select id from t where m is distinct from 'fine'",),
    ),
    Case(
        "drop enum value",
        "alter type mood drop value 'sad'",
        "",
        setup=_SETUP,
        none=("select id from t where m is distinct from 'ok'",),
    ),
    Case(
        "drop enum value that a row has",
        "alter type mood drop value 'sad'",
        "",
        setup=(*_SETUP, _SAD.format(t="t"), "update t set m = 'sad' where id = 90001"),
        fails="23514",
        repair=("delete from t where id = 90001", "delete from w where id = 90001"),
    ),
)

"""The tables of the random load, and what of them must hold whatever happens.

`item` and `part` belong to their writers, each to its own ids, so that every writer knows its rows exactly; `account`
has a sum that transfers keep; `counter` is incremented by all; `journal` gets one row for each transaction, which tells
afterwards whether it happened. `scratch` is truncated now and then.

Constraints and indexes come in two sorts, which their names tell. What is called `sure_` holds by what the writers do:
it can be added at any time and refuses no row. What is called `may_` is violated now and then, by few.
"""

from seachange.engine.session.session import Session

# A row is in the one or the other by its id.
TABLES = ("item", "part")
ACCOUNTS = 16
BALANCE = 1_000
COUNTERS = 8
# Kinds below are always there; those from here on come and go.
KINDS_KEPT, KINDS_MAX = 10, 14
# Every writer has slots of its own; these are used by all, and the last one is one that a check refuses.
SLOTS_SHARED = 200
SLOT_BAD = 2_000_000_000

STATEMENTS = (
    "create table kind (id int primary key, name text)",
    f"insert into kind select i, 'kind ' || i from generate_series(0, {KINDS_KEPT - 1}) g(i)",
    *(
        f"create table {name} (id bigint primary key, code text not null, qty int not null, "
        "slot int, kind int, note text, size int)"
        for name in TABLES
    ),
    "create table account (id int primary key, balance bigint not null, owner text not null)",
    f"insert into account select i, {BALANCE}, 'owner ' || i from generate_series(0, {ACCOUNTS - 1}) g(i)",
    "create table counter (id int primary key, n bigint not null)",
    "create table journal (marker bigint)",
    "create table scratch (marker bigint, n int)",
)


def create_schema(session: Session) -> None:
    for statement in STATEMENTS:
        session.execute(statement)


def table_of(id_: int) -> str:
    return TABLES[id_ % len(TABLES)]


def code_of(id_: int, change: int) -> str:
    """No other change ever uses it. The size of the row is the number of the change, whatever its type is."""
    return f"code {id_}.{change}"

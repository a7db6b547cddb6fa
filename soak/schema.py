"""The tables of the workload, and what must hold of them.

`lists` has the lists that transactions append to, as text; `accounts` balances, `opening` those at the beginning and
`transfers` what was moved since; `items` rows that belong to one client each, with most of the constraints and indexes;
`kinds` their parents. `side` is truncated, renamed and dropped. Rows carry the number of their round.

Constraints and indexes are of two sorts, by name: `sure_` holds by what clients write and refuses no row, `may_` is
broken now and then, by few rows.
"""

from __future__ import annotations

# Lists of one round.
KEYS = 6
ACCOUNTS = 8
BALANCE = 1_000
KINDS_KEPT, KINDS_MAX = 6, 9
SLOTS_SHARED = 100
# Above every id, which a client that is started late begins high.
SLOT_BAD = 2_000_000_000_000
EXTRA_COLUMNS = ("x0", "x1", "x2")

STATEMENTS = (
    "create table lists (id bigint primary key, v text not null, tag int)",
    "create table accounts (id int primary key, balance bigint not null, owner text not null)",
    "create table opening (id int primary key, balance bigint not null)",
    "create table transfers (id bigint primary key, round int not null, payer int not null, payee int not null, "
    "amount int not null)",
    "create table kinds (id int primary key, name text)",
    "create table items (id bigint primary key, round int not null, code text not null, qty int not null, "
    "slot bigint, kind int, note text, size int)",
    "create table side (id bigint, n int)",
    f"insert into accounts select i, {BALANCE}, 'owner ' || i from generate_series(0, {ACCOUNTS - 1}) g(i)",
    f"insert into opening select i, {BALANCE} from generate_series(0, {ACCOUNTS - 1}) g(i)",
    f"insert into kinds select i, 'kind ' || i from generate_series(0, {KINDS_KEPT - 1}) g(i)",
    "create role clerk",
)


def keys_of(round_number: int) -> range:
    return range(round_number * KEYS, (round_number + 1) * KEYS)

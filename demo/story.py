"""The story as data: the tables, their rows, and the changes. The same text runs on Seachange and on PostgreSQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

BALANCE: Final = 1_000
# Rows that traffic inserts and deletes lie above those that were loaded.
TRAFFIC_IDS_FROM: Final = 1_000_000_000


@dataclass(frozen=True)
class Scale:
    accounts: int
    # Of quiet before the first change, and between two.
    pause_s: float
    transactions_per_second: int
    # What the build that is to be interrupted may read and write, so that there is a middle to interrupt it in.
    slow_bytes_per_second: str


FULL: Final = Scale(accounts=1_000_000, pause_s=4.0, transactions_per_second=40, slow_bytes_per_second="8MB")
QUICK: Final = Scale(accounts=20_000, pause_s=0.3, transactions_per_second=40, slow_bytes_per_second="512kB")


@dataclass(frozen=True)
class Step:
    title: str
    statement: str
    # Said in the session before the statement.
    settings: tuple[tuple[str, str], ...] = ()
    # False: answered at once by the session that asks; else a job, which the worker runs.
    is_job: bool = True
    # What the error must name, if the change is to fail.
    fails_with: str | None = None
    # The worker that runs it is killed when this much is done.
    killed_at: float | None = None


def tables() -> tuple[str, ...]:
    return (
        "create table accounts (id bigint primary key, owner text, iban text not null, email text,"
        " balance bigint not null, opened text, note text)",
        "create table ledger (id text primary key, source bigint not null, target bigint not null,"
        " amount bigint not null)",
        "create index ledger_source on ledger (source)",
    )


def rows(scale: Scale) -> tuple[str, ...]:
    """All e-mail addresses but two are distinct; half of the accounts have received a transfer from a neighbour."""
    last = scale.accounts - 1
    return (
        "insert into accounts select i, 'owner ' || (i * 7919) % 1000003, 'DE' || (i * 104729) % 1000000007,"
        f" 'user' || case when i = {last} then {scale.accounts // 2} else i end || '@example.org', {BALANCE},"
        f" '2026-01-' || lpad(((i % 28) + 1)::text, 2, '0'), 'imported' from generate_series(0::bigint, {last}) g(i)",
        "insert into ledger select 'import-' || i, i * 2, i * 2 + 1, 0"
        f" from generate_series(0, {scale.accounts // 4}) g(i)",
    )


def steps(scale: Scale) -> tuple[Step, ...]:
    on_spark = (("seachange.local_rows", "0"),)
    slowly = (
        *on_spark,
        ("seachange.pipeline_unit_rows", str(scale.accounts // 8)),
        ("seachange.pipeline_bytes_per_second", scale.slow_bytes_per_second),
    )
    return (
        Step(
            "a column with a default",
            "alter table accounts add column currency text not null default 'EUR'",
            is_job=False,
        ),
        Step(
            "text becomes date",
            "alter table concurrently accounts alter column opened type date using opened::date",
            on_spark,
        ),
        Step("a unique index", "create unique index concurrently accounts_iban on accounts (iban)", on_spark),
        Step(
            "a foreign key",
            "alter table concurrently ledger add constraint ledger_source_fkey foreign key (source)"
            " references accounts (id)",
        ),
        Step(
            "a CHECK",
            "alter table concurrently accounts add constraint no_debt check (balance > -1000000)",
        ),
        Step(
            "a UNIQUE that does not hold",
            "alter table concurrently accounts add constraint accounts_email unique (email)",
            on_spark,
            fails_with=f"user{scale.accounts // 2}@example.org",
        ),
        Step(
            "an index whose worker is killed",
            "create index concurrently accounts_owner on accounts (owner)",
            slowly,
            killed_at=0.25,
        ),
        Step("a column is dropped", "alter table accounts drop column note", is_job=False),
    )


def locking_form(statement: str) -> str:
    """The same change as PostgreSQL does it by default: the table is locked until it is done."""
    return statement.replace(" concurrently ", " ")

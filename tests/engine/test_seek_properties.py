"""Queries that may look rows up through indexes give what they give by scanning."""

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.engine.transaction.transaction import Transaction
from tests.engine.database import arrow, open_quiet
from tests.support.examples import examples

SCHEMA = (
    "create table t (id bigint primary key, a int, b text, c numeric(8, 2), d double precision, e date, f boolean,"
    " g text unique, h uuid)",
    "create index t_a on t (a)",
    "create index t_b_a on t (b, a)",
    "create index t_c on t (c) include (b)",
    "create index t_d_e on t (d, e)",
    "create index t_e_f on t (e, f)",
    "create index t_h on t (h)",
    "create index t_lower on t (lower(b), a desc)",
    "create index t_sum on t ((a + id)) include (c)",
    "create index t_true on t (a) where f",
    "create unique index t_some on t (b desc, id) where a is not null and c >= 1",
    "create table u (k int, id int, a smallint, v text, primary key (k, id))",
    "create index u_a_v on u (a, v)",
)
COLUMNS = ["id", "a", "b", "c", "d", "e", "f", "g", "h"]
FIRST = date(2024, 1, 1)
TEXTS = ("", "a", "A", "ab", "AB", "abc", "b", "ä", "Ä", "a%", "_")

small = st.integers(-1, 6)
text = st.sampled_from(TEXTS)
numeric = st.integers(-2, 12).map(lambda n: Decimal(n) / 4)
double = st.sampled_from([0.0, -0.0, 0.5, 1.0, 2.5, float("inf"), float("nan")])
day = small.map(lambda n: FIRST + timedelta(days=n))
uuid = small.map(lambda n: UUID(int=n + 1))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "id": st.integers(0, 40),
    "a": small,
    "b": text,
    "c": numeric,
    "d": double,
    "e": day,
    "f": st.booleans(),
    "g": text,
    "h": uuid,
}
# Numbers of other types, too large or too exact ones, and none at all. Statements that compare what cannot be compared
# are left out: DuckDB notices some of them only when it meets a row.
odd = st.one_of(st.none(), small, numeric, double, st.just(10**12), st.just(Decimal("0.001")))
ODD: dict[str, st.SearchStrategy[Any]] = {"id": odd | st.just("1"), "a": odd | st.just("1"), "c": odd, "d": odd}
COMPARISONS = ("=", "=", "=", "<", "<=", ">", ">=", "<>")

Row = tuple[Any, ...]
Clause = tuple[str, list[Any]]


@st.composite
def terms(draw: st.DrawFn, prefix: str = "") -> Clause:
    column = draw(st.sampled_from(COLUMNS))
    value = st.one_of(VALUES[column], VALUES[column], VALUES[column], ODD.get(column, st.none()))
    name = prefix + column
    match draw(st.integers(0, 11)):
        case 8:
            return f"lower({name if column in 'bg' else prefix + 'b'}) = ?", [draw(text).lower()]
        case 9:
            return f"{prefix}a + {prefix}id {draw(st.sampled_from(COMPARISONS))} ?", [draw(st.integers(-1, 46))]
        case 10:
            return f"{draw(st.sampled_from(['', 'not ']))}{prefix}f and {prefix}a >= ?", [draw(small)]
        case 11:
            form = draw(st.sampled_from(["is not null and {p}c > ?", "is not null and {p}c >= 1 and {p}b > ?"]))
            given: Any = draw(text) if "b >" in form else draw(numeric)
            return f"{prefix}b >= '' and {prefix}a {form.format(p=prefix)}", [given]
        case 0:
            values = draw(st.lists(value, min_size=1, max_size=4))
            return f"{name} in ({', '.join('?' for _ in values)})", values
        case 1:
            return f"{name} between ? and ?", [draw(value), draw(value)]
        case 2:
            verb = draw(st.sampled_from(["like", "like", "not like"]))
            return f"{prefix}b {verb} ?", [draw(text) + draw(st.sampled_from(["%", "_", "", "%b%"]))]
        case 4:
            return f"{name} is null", []
        case 3:
            return f"? = {name}", [draw(value)]
        case _:
            return f"{name} {draw(st.sampled_from(COMPARISONS))} ?", [draw(value)]


@st.composite
def conditions(draw: st.DrawFn, prefix: str = "") -> Clause:
    # One or two: of three at once hardly any row meets all.
    parts = draw(st.lists(terms(prefix), min_size=1, max_size=2))
    glue = " or " if draw(st.integers(0, 9)) == 0 else " and "
    return glue.join(f"({t})" for t, _ in parts), [v for _, values in parts for v in values]


@st.composite
def queries(draw: st.DrawFn) -> Clause:
    where, values = draw(conditions("t."))
    plain, plain_values = draw(conditions())
    chosen = ", ".join(draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=3)))
    number = draw(small)
    form: Clause = draw(
        st.sampled_from(
            [
                (f"select * from t where {plain}", plain_values),
                (f"select {chosen} from t where {plain}", plain_values),
                (f"select count(*), min(id) from t where {plain}", plain_values),
                (f"select t.id, u.k, u.id from t join u on u.a = t.a and u.k = ? where {where}", [number, *values]),
                (f"select t.id, u.k, u.id from t left join u on u.a = ? and {where}", [number, *values]),
                (f"select t.id, u.k from u left join t on t.id = u.id and {where} where u.a = ?", [*values, number]),
                (f"select t.id, u.k from u full join t on t.id = u.id where {where}", values),
                (f"select t.id, u.k, u.v from t left join u on u.a = t.a where {where}", values),
                (f"select t.id, u.k, u.v from t, u where u.v = t.b and {where}", values),
                (f"select t.id, x.id from t join t as x on x.b = t.b and x.a = t.a where {where}", values),
                (f"select k, id from u where exists (select 1 from t where t.a = u.a and {where})", values),
                (f"select k, id from u where k = ? and id in (select a from t where {where})", [number, *values]),
                (f"with t as (select * from t where {plain}) select * from t where a = ?", [*plain_values, number]),
            ]
        )
    )
    return form


def population(seed: int) -> tuple[list[Row], list[Row]]:
    """Rows of t and u, many enough that most conditions find some."""
    chance = Random(seed)
    doubles = [0.0, -0.0, 0.5, 1.0, 2.5, float("inf"), float("nan")]

    def maybe(value: Any) -> Any:
        return None if chance.random() < 0.15 else value

    marks = chance.sample(TEXTS, len(TEXTS))
    parents = [
        (
            number,
            maybe(chance.randint(-1, 6)),
            maybe(chance.choice(TEXTS)),
            maybe(Decimal(chance.randint(-2, 12)) / 4),
            maybe(chance.choice(doubles)),
            maybe(FIRST + timedelta(days=chance.randint(-1, 6))),
            maybe(chance.random() < 0.5),
            marks.pop() if marks else None,
            maybe(UUID(int=chance.randint(0, 7))),
        )
        for number in range(0, 40, 2)
    ]
    children = [(k, id_, maybe(chance.randint(-1, 6)), maybe(chance.choice(TEXTS))) for k in range(3) for id_ in (k, 4)]
    return parents, children


@st.composite
def changes(draw: st.DrawFn) -> tuple[str, Any]:
    kind = draw(st.sampled_from(["insert", "insert", "bulk", "update", "delete", "children", "compact", "open"]))
    match kind:
        case "insert" | "bulk":
            row = st.tuples(*(VALUES[c] if c == "id" else st.none() | VALUES[c] for c in COLUMNS))
            return kind, draw(st.lists(row, min_size=1, max_size=8))
        case "children":
            row = st.tuples(small, st.integers(0, 40), st.none() | small, st.none() | text)
            return kind, draw(st.lists(row, min_size=1, max_size=8))
        case "update":
            column = draw(st.sampled_from([c for c in COLUMNS if c != "g"]))
            return kind, (column, draw(VALUES[column]), draw(conditions()))
        case "delete":
            return kind, draw(conditions())
        case _:
            return kind, draw(st.booleans())


def numbered(clause: str) -> str:
    first, *rest = clause.split("?")
    return first + "".join(f"${i}{part}" for i, part in enumerate(rest, 1))


def bulk(session: Session, rows: list[Row]) -> None:
    def work(txn: Transaction) -> int:
        table = txn.schema.table(None, "t")
        return txn.writes.insert_arrow(table, arrow(table, rows))

    session.in_transaction(work)


def change(session: Session, kind: str, what: Any) -> None:
    match kind:
        case "insert" | "children":
            target = "t" if kind == "insert" else "u"
            rows = ", ".join("(" + ", ".join("?" for _ in row) + ")" for row in what)
            flat = [value for row in what for value in row]
            session.execute(numbered(f"insert into {target} values {rows} on conflict do nothing"), flat)
        case "bulk":
            bulk(session, what)
        case "update":
            column, value, (where, values) = what
            session.execute(numbered(f"update t set {column} = ? where {where}"), [value, *values])
        case "delete":
            where, values = what
            session.execute(numbered(f"delete from t where {where}"), values)
        case _:
            raise AssertionError(kind)


def compact(node: Node, full: bool) -> None:
    txn = node.begin()
    tables = txn.schema.tables()
    txn.rollback()
    for table in tables:
        node.compact(table, full)


def scanned(node: Node, session: Session, query: Clause) -> Counter[str]:
    """The truth; a query that fails has none."""
    node.parts.seeks = False
    try:
        return found(session, query)
    finally:
        node.parts.seeks = True


def found(session: Session, query: Clause) -> Counter[str]:
    return Counter(map(repr, session.execute(numbered(query[0]), query[1]).rows))


def check(node: Node, session: Session, asked: list[Clause]) -> None:
    """All in one transaction, so that they read one snapshot."""
    for query in asked:
        session.execute("savepoint q")
        try:
            truth = scanned(node, session, query)
        except errors.Error:
            session.execute("rollback to q")
        else:
            assert found(session, query) == truth, query


@contextmanager
def opened() -> Iterator[Node]:
    with tempfile.TemporaryDirectory() as folder:
        node = open_quiet(Path(folder))
        # Some commits stay inline, others become files.
        node.parts.inline_rows_max = 5
        try:
            yield node
        finally:
            node.close()


def beginning(node: Node) -> Session:
    session = Session(node)
    session.execute("begin isolation level repeatable read")
    return session


@settings(
    max_examples=examples(10),
    deadline=None,
    # A failure names its query; making the whole example small takes minutes.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    seed=st.integers(0, 2**32),
    steps=st.lists(changes(), max_size=8),
    own=st.lists(changes().filter(lambda step: step[0] not in {"compact", "open"}), max_size=2),
    asked=st.lists(queries(), min_size=20, max_size=30),
)
def test_seeks_agree_with_scans(seed, steps, own, asked):
    with opened() as node, ExitStack() as stack:
        writer = Session(node)
        stack.callback(writer.close)
        for statement in SCHEMA:
            writer.execute(statement)
        parents, children = population(seed)
        bulk(writer, parents[:10])
        change(writer, "insert", parents[10:])
        change(writer, "children", children)
        old: list[Session] = []
        for kind, what in steps:
            if kind == "open":
                old.append(beginning(node))
                stack.callback(old[-1].close)
            elif kind == "compact":
                compact(node, what)
            else:
                with suppress(errors.Error):
                    change(writer, kind, what)
        reader = beginning(node)
        stack.callback(reader.close)
        for session in (*old, reader):
            check(node, session, asked)
        for kind, what in own:
            reader.execute("savepoint s")
            try:
                change(reader, kind, what)
            except errors.Error:
                reader.execute("rollback to s")
            check(node, reader, asked)

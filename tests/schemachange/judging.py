"""What must hold when a run is over, as a list of what does not."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.jobs import JobStatus
from seachange.verify.consistency import check
from tests.schemachange.bench import Bench, How, Interruption, Outcome
from tests.schemachange.description import describe, difference, settled
from tests.schemachange.stored import stored_indexes
from tests.schemachange.writers import ROLES, target_of
from tests.support.judge import referenced_segments


def expected_status(bench: Bench, outcome: Outcome, interruption: Interruption | None) -> JobStatus:
    case = bench.case
    how = interruption.how if interruption is not None and outcome.interrupted else None
    if how is How.CANCEL:
        return JobStatus.CANCELED
    spoiled = how is How.SPOIL and not outcome.spoiled
    return JobStatus.FAILED if case.fails or spoiled else JobStatus.SUCCEEDED


def judge(bench: Bench, outcome: Outcome, interruption: Interruption | None = None) -> list[str]:
    return list(_judge(bench, outcome, interruption))


def _judge(bench: Bench, outcome: Outcome, interruption: Interruption | None) -> Iterator[str]:
    case = bench.case
    status = expected_status(bench, outcome, interruption)
    if case.spoil and outcome.spoiled not in ("", case.spoil[1]):
        yield f"the spoiler got {outcome.spoiled}"
    yield from _judge_refusals(bench)
    if not case.at_once:
        yield from _judge_record(bench, outcome, status)
    yield from _judge_schema(bench, outcome, status)
    yield from _judge_rows(bench)
    if status is JobStatus.SUCCEEDED:
        yield from _judge_done(bench)
        return
    yield from _judge_again(bench, outcome, interruption)


def _judge_refusals(bench: Bench) -> Iterator[str]:
    for refusal in bench.traffic.refusals:
        if refusal.sqlstate not in bench.case.refuses:
            yield f"refused: {refusal}"
    if not bench.traffic.committed:
        yield "no transaction has committed"


def _judge_record(bench: Bench, outcome: Outcome, status: JobStatus) -> Iterator[str]:
    record = outcome.record
    if record is None:
        yield "there is no job"
        return
    if record.status is not status:
        yield f"the job is {record.status} instead of {status}"
    if status is JobStatus.FAILED:
        expected = bench.case.fails or (bench.case.spoil or ("", ""))[1]
        found = _rows(bench.runner, f"select sqlstate, error from seachange.jobs where id = {record.id}")
        if found[0][0] != expected:
            yield f"the job failed with {found[0]} instead of {expected}"


def _judge_schema(bench: Bench, outcome: Outcome, status: JobStatus) -> Iterator[str]:
    for node in bench.nodes:
        node.epoch.catch_up()
    after, before = bench.tables(), outcome.before
    t, now = outcome.before["t"], bench.table()
    if status is JobStatus.SUCCEEDED:
        if difference(t, now) != _normal(bench.case.changes):
            yield f"the descriptor differs by\n{difference(t, now)}"
        return
    if bench.relations() != outcome.relations:
        yield f"relations have come or gone: {bench.relations() ^ outcome.relations}"
    for name, table in before.items():
        if settled(after.get(name), bench.case.in_two) != settled(table, bench.case.in_two):
            yield f"{name} is not as before:\n{difference(table, after.get(name)) or describe(after.get(name))}"


def _normal(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().splitlines())


def _judge_rows(bench: Bench) -> Iterator[str]:
    """The table and its twin have the same rows, on every node, and every index agrees with them."""
    tables, table = bench.tables(), bench.table()
    if table is not None:
        target = target_of(table, bench.case.renames)
        roles = [role for role in ROLES if role in target.names]
        columns = [(target.names[role], role) for role in roles]
        if "p" in table.column_by_name:
            columns.append(("p", "p"))
        casts = ", ".join(f"{column}::text" for column, _ in columns)
        is_converted = bench.case.converts if converted(bench) else {}
        twins = ", ".join(f"({is_converted.get(role, role)})::text" for _, role in columns)
        for node in bench.nodes[1:]:
            rows = Counter(_rows(node, f"select {casts} from {target.table}"))
            wanted = Counter(_rows(node, f"select {twins} from w"))
            if rows != wanted:
                lost, excess = list(wanted - rows)[:3], list(rows - wanted)[:3]
                yield f"node {node.name}: {target.table} lacks {lost} and has {excess} that its twin has not"
    others = [f"{other.schema}.{name}" for name, other in tables.items() if name not in ("w", "p")]
    yield from (f"check: {anomaly}" for anomaly in check(bench.runner, others))
    yield from _judge_files(bench)


def converted(bench: Bench) -> bool:
    """Whether the change is there, by the types of its columns."""
    tables = bench.tables()
    return any(tables["t"].column_by_name[c].type != tables["w"].column_by_name[c].type for c in bench.case.converts)


def _judge_files(bench: Bench) -> Iterator[str]:
    """After garbage collection exactly the files exist that are read."""
    for node in bench.nodes:
        node.follow()
        node.beat()
    bench.runner.collect_garbage(0)
    wanted = {bench.runner.parts.warehouse.name(segment_id) for segment_id in referenced_segments(bench.runner)}
    there = set(bench.runner.parts.files.names())
    if there - wanted:
        yield f"files are left: {sorted(there - wanted)}"
    if wanted - there:
        yield f"files are missing: {sorted(wanted - there)}"
    known = {index.id for table in bench.tables().values() for index in table.indexes}
    orphans = set(stored_indexes(bench.place)) - known
    if orphans:
        yield f"the catalog keeps data of indexes that are gone: {sorted(orphans)}"


def _judge_done(bench: Bench) -> Iterator[str]:
    for query in bench.case.none:
        found = _rows(bench.runner, query)
        if found:
            yield f"{query} gives {found[:3]}"


def _judge_again(bench: Bench, outcome: Outcome, interruption: Interruption | None) -> Iterator[str]:
    """A rolled-back change can be made again: its names are free."""
    case = bench.case
    spoiled = interruption is not None and interruption.how is How.SPOIL and outcome.interrupted
    with closing(Session(bench.runner)) as session:
        try:
            for statement in case.repair if case.fails or spoiled else ():
                session.execute(statement)
            session.execute(case.statement)
        except errors.Error as problem:
            yield f"again: {problem.sqlstate} {problem}"
            return
    yield from _judge_schema(bench, outcome, JobStatus.SUCCEEDED)
    yield from (f"again, check: {anomaly}" for anomaly in check(bench.runner, ["t"]))


def _rows(node: Node, query: str) -> list[tuple[Any, ...]]:
    with closing(Session(node)) as session:
        return [tuple(row) for row in session.execute(query).rows]

"""EXPLAIN (DDL): the plan of a schema change.

**Invariant:** nothing is changed: ids are invented, and the plan is only printed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

from seachange import errors
from seachange.model.ids import DescriptorId, TableId
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Descriptor
from seachange.model.statements import Begin, Commit, DdlExplanation, DdlStatement, Explain
from seachange.planner.advice import advise
from seachange.planner.builders.draft import at_rest
from seachange.planner.explain.form import explain_plan
from seachange.planner.explain.names import one_line, quote
from seachange.planner.explain.stages import summary
from seachange.planner.known_schema import KnownSchema, TableSize, apply_ops
from seachange.planner.plan import ChangePlan, plan_statements
from seachange.planner.rules.release import release_of
from seachange.planner.strategy import Cost, measure_whole
from seachange.sql.change.build_samples import BuildSamples
from seachange.sql.change.explain_check import explain_check
from seachange.sql.change.explain_each import describe_refusal, describe_step, show_steps, with_created
from seachange.sql.change.like import expand_likes
from seachange.sql.change.local_times import resolve_local_times
from seachange.sql.change.materialized import define_columns
from seachange.sql.change.object_access import check_plan
from seachange.sql.change.own_changes import needs_own_work
from seachange.sql.change.past_schema import with_past
from seachange.sql.change.privilege_checks import check_needs
from seachange.sql.change.session_names import resolve_session_names
from seachange.sql.change.shapes import explain_shapes
from seachange.sql.change.time_constants import resolve_time_functions
from seachange.sql.change.type_checks import verify_checks
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.parsing.parse import parse_script
from seachange.sql.port.port import TransactionPort
from seachange.sql.query.databases import check_named_databases, known_schema, table_of
from seachange.sql.text.tokens import split_script

_OWN_WORK = "In this transaction all stages run inside the statement, without a wait: no other session sees the rows."
# The prefix of remarks in formats that another program reads.
_COMMENTS: dict[DdlExplanation, str] = {DdlExplanation.PICTURE: "// "}


def explain_ddl(statement: Explain, port: TransactionPort, duck: DuckSession) -> list[str]:
    """Each form in turn, then what the model checker says."""
    assert statement.ddl is not None
    if statement.is_each:
        return show_steps(_explain_each(statement.query, port), statement.as_json)
    forms = (statement.ddl, *statement.more)
    said, plan, catalog = _planned(statement.query, port, duck)
    found = {form.value: explain_plan(plan, catalog, form) for form in forms}
    if statement.verify_s is not None:
        found["verify"] = explain_check(plan, catalog, statement.verify_s, port)
    if statement.as_json:
        return [json.dumps({"remarks": said, **found}, indent=2)]
    comment = _COMMENTS.get(statement.ddl, "")
    if statement.verify_s is not None and statement.ddl is DdlExplanation.STAGES:
        # The plan itself was not asked for.
        found = {"verify": [summary(plan, catalog), *found["verify"]]}
    return [*(comment + one_line(line) for line in said), *(line for lines in found.values() for line in lines)]


def _planned(text: str, port: TransactionPort, duck: DuckSession) -> tuple[list[str], ChangePlan, KnownSchema]:
    """What is to be said before a plan; the plan, and the catalog that it was made for."""
    said: list[str] = []
    statements = [
        resolve_local_times(define_columns(resolved, port, duck), port, duck, said)
        for statement in _read(text)
        for resolved in _resolved(statement, port)
    ]
    for statement in statements:
        check_named_databases(statement, port)
        check_needs(statement, port)
    plan, catalog = _plan(statements, port)
    for statement in statements:
        check_plan(statement, plan, catalog.descriptors, port)
    after = _after(plan, catalog)
    _verify(catalog, after, duck)
    shapes = explain_shapes(catalog.descriptors, after.descriptors, port)
    own = [_OWN_WORK] if needs_own_work(plan, port) else []
    plan, catalog, remarks = _with_rows(plan, catalog, statements)
    notices = [f"Notice: {notice}" for notice in (*said, *plan.notices, *advise(plan, catalog))]
    return [*notices, *own, *remarks, *shapes], plan, catalog


def _explain_each(text: str, port: TransactionPort) -> list[dict[str, Any]]:
    read = [(each, _try_resolve(each, port)) for each in _statements_within(text)]
    resolved = [statement for _, found in read if not isinstance(found, errors.Error) for statement in found]
    catalog = _catalog(resolved, port)
    ids, release = _made_up_ids(catalog.descriptors.values()), release_of(port.definitions.release)
    existing, steps = catalog.descriptors.keys(), []
    for each, found in read:
        try:
            if isinstance(found, errors.Error):
                raise found
            plan = plan_statements(catalog, found, ids, release=release)
            for statement in found:
                check_plan(statement, plan, catalog.descriptors, port)
            after = _after(plan, catalog)
        except errors.Error as problem:
            steps.append(describe_refusal(each, problem))
            continue
        notices = [*plan.notices, *advise(plan, catalog)]
        # A table that a statement before creates has no rows.
        if plan.change.empty & existing:
            plan, catalog_of_plan, remarks = _with_rows(plan, catalog, found)
            steps.append(describe_step(each, plan, catalog_of_plan, [*notices, *remarks]))
        else:
            steps.append(describe_step(each, plan, catalog, notices))
        catalog = with_created(catalog, after)
    return steps


def _statements_within(text: str) -> list[str]:
    """The texts of the statements, without the BEGIN and COMMIT around them."""
    texts = [raw.text for raw in split_script(text)]
    if texts and isinstance(parse_script(texts[0])[0], Begin):
        is_ended = isinstance(parse_script(texts[-1])[0], Commit)
        texts = texts[1 : -1 if is_ended else None]
    return texts


def _try_resolve(text: str, port: TransactionPort) -> list[DdlStatement] | errors.Error:
    try:
        found = [resolved for statement in _read(text) for resolved in _resolved(statement, port)]
        for statement in found:
            check_named_databases(statement, port)
            check_needs(statement, port)
    except errors.Error as problem:
        return problem
    return found


def cost_of(statement: DdlStatement, port: TransactionPort) -> Cost:
    """The cost of a statement for the current rows."""
    return measure_whole(*_plan(_resolved(statement, port), port))


def _resolved(statement: DdlStatement, port: TransactionPort) -> list[DdlStatement]:
    named = resolve_session_names(statement, port)
    return [resolve_time_functions(expanded, port) for expanded in expand_likes(named, port)]


def _plan(statements: Sequence[DdlStatement], port: TransactionPort) -> tuple[ChangePlan, KnownSchema]:
    """The plan with invented ids, and the catalog that it was planned for."""
    catalog = _catalog(statements, port)
    ids, release = _made_up_ids(catalog.descriptors.values()), release_of(port.definitions.release)
    return plan_statements(catalog, statements, ids, release=release), catalog


def _catalog(statements: Sequence[DdlStatement], port: TransactionPort) -> KnownSchema:
    known = known_schema(statements, port, partial(_Sizes, port))
    # The statement would wait for a running change, so the plan ignores it.
    rested = {id_: at_rest(descriptor) for id_, descriptor in known.descriptors.items()}
    sampled = replace(known.with_descriptors(rested), sampler=BuildSamples(port.estimates))
    return with_past(statements, sampled, port)


def _read(text: str) -> list[DdlStatement]:
    statements: list[DdlStatement] = []
    parsed = parse_script(text)
    if parsed and isinstance(parsed[0], Begin):
        parsed = parsed[1:-1] if isinstance(parsed[-1], Commit) else parsed[1:]
    for statement in parsed:
        if not isinstance(statement, DdlStatement):
            detail = "EXPLAIN (DDL) takes a statement that changes the schema, or several between BEGIN and COMMIT"
            raise errors.SyntaxProblem(detail=detail)
        statements.append(statement)
    if not statements:
        raise errors.SyntaxProblem(detail="EXPLAIN (DDL) takes a statement")
    return statements


def _made_up_ids(known: Iterable[Descriptor]) -> Iterator[int]:
    """Above all ids in use, so that objects sort as they would after the real change."""
    used = [id_ for one in known for id_ in (one.id, *(one.index_by_id if isinstance(one, Table) else ()))]
    return count(max(used, default=0) + 1)


def _after(plan: ChangePlan, catalog: KnownSchema) -> KnownSchema:
    after = catalog
    for stage in plan.stages:
        after = apply_ops(after, plan.ops(stage))
    return after if plan.then is None else _after(plan.then, after)


def _verify(catalog: KnownSchema, after: KnownSchema, duck: DuckSession) -> None:
    """Only DuckDB knows whether an expression is valid."""
    for id_, table in after.descriptors.items():
        before = catalog.descriptors.get(id_)
        if isinstance(table, Table) and (table.checks or table.retired) and table != before:
            verify_checks(before if isinstance(before, Table) else None, table, duck)


def _with_rows(
    plan: ChangePlan, catalog: KnownSchema, statements: Sequence[DdlStatement]
) -> tuple[ChangePlan, KnownSchema, list[str]]:
    """On an empty table nearly every change is one step. The plan shown is that for a table with rows, of an unknown
    number; a remark says what the change takes now."""
    if not plan.change.empty:
        return plan, catalog, []
    tables = [table for table in catalog.descriptors.values() if table.id in plan.change.empty]
    empty = " and ".join(sorted(quote(table.name) for table in tables))
    now = f"As long as {empty} has no rows: {summary(plan, catalog)}."
    ids = _made_up_ids(catalog.descriptors.values())
    sizes = {id_: catalog.sizes[id_] for id_ in plan.change.sources if id_ not in plan.change.empty}
    filled = replace(catalog, sizes=sizes)
    try:
        full = plan_statements(filled, statements, ids, release=release_of(plan.change.release))
    except errors.Error as error:
        return plan, catalog, [f"{now} With rows it would fail: {error}"]
    return (full, filled, [f"{now} With rows:"]) if full.stages != plan.stages else (plan, catalog, [])


class _Sizes(Mapping[TableId, TableSize]):
    """Table sizes, found on demand: finding all of them would load every table."""

    def __init__(self, port: TransactionPort, descriptors: Mapping[DescriptorId, Descriptor]) -> None:
        self._port = port
        self._descriptors = descriptors
        self._known: dict[TableId, TableSize] = {}

    def __getitem__(self, table_id: TableId) -> TableSize:
        if table_id not in self._known:
            self._known[table_id] = self._port.reads.size(table_of(self._descriptors, table_id))
        return self._known[table_id]

    def __iter__(self) -> Iterator[TableId]:
        return (id_ for id_, found in self._descriptors.items() if isinstance(found, Table))

    def __len__(self) -> int:
        return sum(1 for _ in self)

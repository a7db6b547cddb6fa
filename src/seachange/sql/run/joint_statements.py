"""Statements of one message that follow each other and add indexes and constraints to one table, as one change: its
builds share a scan, and all of it one wait for writers.

**Invariant:** a client cannot tell it from the statements one by one. They are run so if there is anything to say about
one of them, an error or a notice: a change that has failed leaves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile

from seachange import errors
from seachange.model.relation import RelationName
from seachange.model.statements import (
    AddConstraint,
    AlterAction,
    AlterTable,
    CheckDefinition,
    CreateIndex,
    DdlStatement,
    ForeignKeyDefinition,
    KeyDefinition,
    SetNotNull,
)
from seachange.planner.known_schema import KnownSchema
from seachange.planner.plan import ChangePlan, plan_statements
from seachange.planner.rules.release import release_of
from seachange.sql.change.block_change import check_supported, run_in_block
from seachange.sql.change.command_tags import command_tag
from seachange.sql.change.local_times import resolve_local_times
from seachange.sql.change.object_access import check_named_roles, check_plan
from seachange.sql.change.own_changes import is_own_work
from seachange.sql.change.privilege_checks import check_needs
from seachange.sql.change.running_changes import check_change
from seachange.sql.change.schema_change import TableSizes, fresh_ids, refuse_unfit, takes_job
from seachange.sql.change.session_names import resolve_session_names
from seachange.sql.change.time_constants import resolve_time_functions
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Result
from seachange.sql.query.databases import check_named_databases, known_schema
from seachange.sql.run.execute import Prepared

# The classes of errors that one of the statements causes: what is not supported, values, constraints, names and rights.
# Others are about other transactions, or about the machine.
_CLASSES_OF_ONE = ("0A", "22", "23", "42")


def find_joint(first: Prepared, others: Sequence[Prepared]) -> tuple[Prepared, ...]:
    """Those that can be one change with the first."""
    table = _extended_table(first)
    if table is None:
        return ()
    return tuple(takewhile(lambda other: _extended_table(other) == table, others))


def _extended_table(prepared: Prepared) -> RelationName | None:
    """The table that a statement adds indexes and valid constraints to, if it does nothing else."""
    match prepared.parsed:
        case CreateIndex(table=table, concurrently=False, if_not_exists=False):
            return table
        case AlterTable(table=table, actions=actions, concurrently=False, if_exists=False) if all(map(_adds, actions)):
            return table
        case _:
            return None


def _adds(action: AlterAction) -> bool:
    match action:
        case SetNotNull():
            return True
        case AddConstraint(constraint=KeyDefinition(primary=primary, using_index=index)):
            return not primary and index is None
        case AddConstraint(constraint=CheckDefinition(not_valid=late) | ForeignKeyDefinition(not_valid=late)):
            return not late
        case _:
            return False


def run_joint(prepared: Sequence[Prepared], port: TransactionPort, duck: DuckSession) -> list[Result] | None:
    """None if they are to be run one by one."""
    mark = port.undo.mark()
    duck.serve(port)
    try:
        for each in prepared:
            check_named_databases(each.parsed, port)
        statements = _resolved(prepared, port, duck)
        is_run = statements is not None and _run(statements, "; ".join(each.text for each in prepared), port, duck)
        return [Result(command_tag(statement)) for statement in statements] if statements and is_run else None
    except BaseException as problem:
        port.undo.reset(mark)
        if isinstance(problem, errors.Error) and problem.sqlstate.startswith(_CLASSES_OF_ONE):
            return None
        raise
    finally:
        duck.serve(None)


def _resolved(prepared: Sequence[Prepared], port: TransactionPort, duck: DuckSession) -> list[DdlStatement] | None:
    found: list[DdlStatement] = []
    notices: list[str] = []
    for each in prepared:
        assert isinstance(each.parsed, CreateIndex | AlterTable)
        local = resolve_session_names(each.parsed, port)
        found.append(resolve_local_times(resolve_time_functions(local, port), port, duck, notices))
    return None if notices else found


def _run(statements: Sequence[DdlStatement], text: str, port: TransactionPort, duck: DuckSession) -> bool:
    """False if it takes no job: the statements are cheap one by one."""
    catalog = known_schema(statements, port, partial(TableSizes, port))
    for statement in statements:
        check_named_roles(statement, port)
        check_needs(statement, port)
    alone = _plan(catalog, statements, port, in_block=False)
    if not takes_job(alone) or alone.change.empty or is_own_work(alone, port):
        return False
    plan = _plan(replace(catalog, sizes={}), statements, port, in_block=True)
    if plan.notices:
        return False
    for statement in statements:
        check_plan(statement, plan, catalog.descriptors, port)
    refuse_unfit(plan)
    check_supported(plan, catalog, port)
    check_change(plan.change, port)
    run_in_block(text, plan, catalog, port, duck)
    return True


def _plan(
    catalog: KnownSchema, statements: Sequence[DdlStatement], port: TransactionPort, in_block: bool
) -> ChangePlan:
    release = release_of(port.definitions.release)
    return plan_statements(catalog, statements, fresh_ids(port), release=release, in_block=in_block)

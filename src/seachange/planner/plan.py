"""From statements to a plan: targets, graph, stages and ops.

**Invariant:** a pure function. The same catalog, statements and ids give the same plan; a plan made again from where a
change has come to is the rest of the first one. So a job asks for its plan before every step, and a plan that was made
before is found again in a cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from seachange import errors
from seachange.model.change.elements import (
    ColumnName,
    ForeignKeyElement,
    NamespaceElement,
    TableElement,
    UniqueIndex,
    descriptor_of,
)
from seachange.model.change.ops import FALLIBLE, Op
from seachange.model.change.targets import GOAL_STATUS, Goal, Status, Target
from seachange.model.ids import IndexId, TableId
from seachange.model.object_kind import ObjectKind
from seachange.model.relation import RelationName
from seachange.model.schema.descriptor import Table
from seachange.model.statements import AddRowId, AlterTable, DdlStatement, DropTable, RevertChange
from seachange.planner.builders.draft import Draft, at_rest
from seachange.planner.builders.primary_key import loses_key
from seachange.planner.builders.revert import needs_tables_first, table_to_number
from seachange.planner.builders.row_id import find_row_id
from seachange.planner.builders.statement import build_statement
from seachange.planner.graph import Graph, Skip, build_graph
from seachange.planner.known_schema import KnownSchema, apply_ops
from seachange.planner.rules.release import CURRENT, Release, release_of
from seachange.planner.skips import find_skips
from seachange.planner.split import adds_known_column, number_first, split_statement, without_columns
from seachange.planner.stage_ops import stage_ops
from seachange.planner.stages import Phase, Progress, Stage, build_stages, unfenced_at_first


@dataclass(frozen=True, slots=True)
class Change:
    """What shall be done, as a job keeps it: everything that a plan is made from, besides how far it has come."""

    targets: tuple[Target, ...]
    skips: Mapping[int, Skip]
    sources: Mapping[TableId, IndexId]
    # Tables that are taken to have no rows, which the publication checks; and those of which no writer below the
    # version that is published may commit any more.
    empty: frozenset[TableId] = frozenset()
    fenced: frozenset[TableId] = frozenset()
    release: int = CURRENT.number
    # Whether a transaction block makes it: its COMMIT is the publication, and the stages before are child transactions.
    in_block: bool = False


@dataclass(frozen=True, slots=True)
class Sequel:
    """A second change, begun by the publication of the first. `undo` takes that back if the second fails: what is there
    by then, as if it were being added."""

    change: Change
    undo: Change


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """`then` is the plan of the sequel, over `between`, the catalog that the first change leaves. `follows`: it is the
    plan of a sequel itself. `refilled` are tables whose rows as of a sequence are written again."""

    change: Change
    graph: Graph
    stages: tuple[Stage, ...]
    notices: tuple[str, ...] = ()
    then: ChangePlan | None = None
    between: KnownSchema | None = None
    sequel: Sequel | None = None
    follows: bool = False
    refilled: Mapping[TableId, int] = field(default_factory=dict)

    def ops(self, stage: Stage) -> tuple[Op, ...]:
        return stage_ops(self.graph, stage, self.change.sources)


def plan_statements(
    catalog: KnownSchema,
    statements: Sequence[DdlStatement],
    ids: Iterator[int],
    evaluated: Mapping[str, str | None] | None = None,
    release: Release = CURRENT,
    in_block: bool = False,
) -> ChangePlan:
    """`ids` are fresh descriptor and index ids; `evaluated` the values of stable defaults by their text; `in_block`:
    what takes longer than a COMMIT is done before it, by child transactions of the block."""
    draft = Draft(catalog, ids, evaluated=evaluated)
    parts = _find_parts(draft, statements[0]) if len(statements) == 1 else None
    if parts is not None and in_block:
        # The second is planned once the first is done.
        raise errors.FeatureNotSupported(
            feature="a statement that takes two changes, one after the other, in a transaction block",
            instead="Send it outside of a block, or write it as two statements.",
        )
    if parts is not None:
        return _plan_both(draft, *parts, release)
    return _plan_as_one(draft, statements, release, in_block)


def parts_of(catalog: KnownSchema, statement: DdlStatement) -> tuple[DdlStatement, DdlStatement] | None:
    """The two changes that a statement takes, which a transaction block makes one after the other."""
    return _find_parts(Draft(catalog, iter(())), statement)


def _find_parts(draft: Draft, statement: DdlStatement) -> tuple[DdlStatement, DdlStatement] | None:
    """Of a table without rows nothing has to be there before anything else."""
    if isinstance(statement, RevertChange):
        if statement.tables_only:
            return None
        name = table_to_number(draft, statement)
        if name is not None:
            return AlterTable(name, (AddRowId(),)), statement
        return (replace(statement, tables_only=True), statement) if needs_tables_first(draft, statement) else None
    if not isinstance(statement, AlterTable):
        return None
    found = draft.find(statement.table)
    if found is None or found.kind is not ObjectKind.TABLE:
        return None
    # Once the rows have numbers, to lose the key is one change.
    loses = loses_key(draft, found.id, statement.actions) and find_row_id(draft, found.id) is None
    parts = number_first(statement) if loses else split_statement(statement)
    # Whether the table has rows is looked up for few statements.
    if parts is None or draft.catalog.is_empty(found.id):
        return None
    known = [name.name for name in draft.select(ColumnName, table_id=found.id)]
    return None if not loses and adds_known_column(parts[0], known) else parts


def _plan_both(draft: Draft, first: DdlStatement, then: DdlStatement, release: Release) -> ChangePlan:
    plan = _plan_as_one(draft, [first], release)
    between = _without_others(draft.catalog, plan.change)
    for stage in plan.stages:
        between = apply_ops(between, plan.ops(stage))
    following = replace(_plan_as_one(draft.again(between), [then], release), follows=True)
    back = _plan_as_one(draft.again(between), [_way_back(first, plan, between)], release)
    there = tuple(Target(t.element, Goal.PUBLIC, Status.ABSENT, t.statement) for t in back.change.targets)
    sequel = Sequel(following.change, replace(back.change, targets=there))
    notices = (*plan.notices, *following.notices)
    return replace(plan, notices=notices, then=following, between=between, sequel=sequel)


def _way_back(first: DdlStatement, plan: ChangePlan, after: KnownSchema) -> DdlStatement:
    """What takes the first of two changes back."""
    if isinstance(first, AlterTable):
        return without_columns(first)
    back = [t.element.table_id for t in plan.change.targets if isinstance(t.element, TableElement)]
    tables = [table for id_ in back if isinstance(table := after.descriptors.get(id_), Table)]
    return DropTable(tuple(RelationName(table.schema, table.name) for table in tables), cascade=True)


def _without_others(catalog: KnownSchema, change: Change) -> KnownSchema:
    """Another change may be under way, which is waited for when this one is planned: it is planned without it."""
    touched = {descriptor_of(target.element) for target in change.targets} & set(catalog.descriptors)
    rested = {id_: at_rest(catalog.descriptors[id_]) for id_ in touched}
    return catalog.with_descriptors({**catalog.descriptors, **rested})


def _plan_as_one(
    draft: Draft, statements: Sequence[DdlStatement], release: Release, in_block: bool = False
) -> ChangePlan:
    catalog = draft.catalog
    change, notices = _build_change(draft, statements, release, in_block)
    refilled = dict(draft.refilled)
    graph = build_graph(change.targets, release, change.skips, in_block)
    if change.empty and any(node.step.op in FALLIBLE for node in graph.nodes):
        # Rows may come before such a plan is done, and its publication must not fail for them.
        try:
            change, notices = _build_change(draft.again(replace(catalog, sizes={})), statements, release, in_block)
        except errors.Error as error:
            raise _refuse_together(catalog, change) from error
        graph = build_graph(change.targets, release, change.skips, in_block)
    _refuse_early_names(graph)
    first_phase = Phase.STATEMENT if in_block else Phase.PRE_COMMIT
    stages = build_stages(graph, first_phase, unfenced_at_first(change.targets))
    return ChangePlan(change, graph, stages, notices, refilled=refilled)


def _refuse_early_names(graph: Graph) -> None:
    """A sequence or type that comes with a hidden column has its name long before the publication, which is when names
    and schemas of others change."""
    if not any(node.step.op in FALLIBLE for node in graph.nodes):
        return
    for number, node in enumerate(graph.nodes):
        element = graph.targets[node.target].element
        needed = [graph.nodes[dependency.first] for dependency in graph.required[number]]
        if (
            isinstance(element, NamespaceElement)
            and node.step.revertible
            and any(not n.step.revertible for n in needed)
        ):
            raise errors.FeatureNotSupported(
                feature=f"a new column that needs {element.kind} {element.schema}.{element.name}, whose schema or name "
                "is to be had only when the same transaction is done,",
                instead="Commit first what makes the schema, or sets the name free.",
            )


def _refuse_together(catalog: KnownSchema, change: Change) -> errors.Error:
    names = ", ".join(sorted(catalog.descriptors[id_].name for id_ in change.empty))
    return errors.FeatureNotSupported(
        feature=f"a change that needs {names} to be empty, together with one that takes longer than its COMMIT,",
        instead="Commit the one first, then the other.",
    )


def _build_change(
    draft: Draft, statements: Sequence[DdlStatement], release: Release, in_block: bool
) -> tuple[Change, tuple[str, ...]]:
    for number, statement in enumerate(statements):
        draft.statement = number
        build_statement(draft, statement)
    targets = draft.finish()
    if in_block:
        targets = tuple(map(mark_uncommitted, targets))
    skips = find_skips(targets, draft, release, in_block)
    sources = _sources(draft.catalog, targets)
    fenced = draft.empty | draft.emptied | draft.repointed | draft.drawn
    if in_block:
        fenced |= ends_of_keys(targets, skips)
    change = Change(targets, skips, sources, frozenset(draft.empty), frozenset(fenced), release.number, in_block)
    return change, tuple(draft.notices)


def mark_uncommitted(target: Target) -> Target:
    """Writers have to know, before they check anything, that a key of it rejects none of them."""
    element = target.element
    if isinstance(element, UniqueIndex | ForeignKeyElement) and _is_uncommitted(target):
        return replace(target, element=replace(element, uncommitted=True))
    return target


def _is_uncommitted(target: Target) -> bool:
    return target.adds and target.start not in (Status.ENFORCED, Status.PUBLIC)


def ends_of_keys(targets: Sequence[Target], skips: Mapping[int, Skip]) -> set[TableId]:
    """The tables of foreign keys that writers have declared keys for. A row written with the uncommitted foreign key
    has not locked its parent, so it is checked again if it is committed after the block."""
    added = (t for n, t in enumerate(targets) if n not in skips and _is_uncommitted(t))
    ends = (t.element for t in added if isinstance(t.element, ForeignKeyElement))
    return {id_ for end in ends for id_ in (end.table_id, end.parent_id)}


def plan_remainder(change: Change, progress: Progress, phase: Phase) -> ChangePlan:
    """What is left of a change that has come to `progress`."""
    targets = [replace(t, start=s) for t, s in zip(change.targets, progress.statuses, strict=True)]
    if phase is Phase.NON_REVERTIBLE:
        # What was there for the duration of the change has gone with the publication.
        targets = [replace(t, goal=Goal.ABSENT) if t.goal is Goal.TRANSIENT else t for t in targets]
    return _plan(change, targets, phase, progress)


def plan_revert(change: Change, progress: Progress, release: Release | None = None) -> ChangePlan:
    """The way back from `progress`: what was added goes, what was to go stays. By the rules that the change was
    planned with, if no others are given."""
    targets = [_turned(t, s) for t, s in zip(change.targets, progress.statuses, strict=True)]
    return _plan(change, targets, Phase.NON_REVERTIBLE, progress, release)


def _turned(target: Target, status: Status) -> Target:
    if target.adds and target.start is Status.ABSENT:
        return replace(target, goal=Goal.ABSENT, start=status)
    if target.adds and target.start is Status.WRITE_ONLY:
        # It was hidden before.
        return replace(target, goal=Goal.HIDDEN, start=Status.WRITE_ONLY)
    back = Goal.ENFORCED if target.start is Status.ENFORCED else Goal.PUBLIC
    if GOAL_STATUS[back] is not status and target.adds:
        # A constraint that was being validated is as little valid as before.
        return replace(target, goal=Goal.ENFORCED, start=Status.ENFORCED)
    return replace(target, goal=back, start=status)


def _plan(
    change: Change, targets: Sequence[Target], phase: Phase, progress: Progress, release: Release | None = None
) -> ChangePlan:
    """Rules that are given are those of an experiment, whose plans are not asked for again."""
    if release is not None:
        graph = build_graph(targets, release, change.skips, change.in_block)
    else:
        graph = rest_graph(_SameChange(change), tuple((t.goal, t.start) for t in targets))
    return ChangePlan(change, graph, build_stages(graph, phase, progress.unfenced))


@dataclass(frozen=True, slots=True, eq=False)
class _SameChange:
    """A change as the key of a cache: the same object. Equal changes may differ in fields that only a plan knows, which
    take no part in comparisons."""

    change: Change

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SameChange) and self.change is other.change

    def __hash__(self) -> int:
        return id(self.change)


# A runner asks for few points of one change, one after the other; a large change has a large graph.
_GRAPHS_MAX = 32


@lru_cache(maxsize=_GRAPHS_MAX)
def rest_graph(same: _SameChange, points: tuple[tuple[Goal, Status], ...]) -> Graph:
    """What is left of a change whose targets have these goals and are at these statuses. Waits for writers are not in
    it: a raise changes the stages, not the graph."""
    change = same.change
    targets = [replace(t, goal=g, start=s) for t, (g, s) in zip(change.targets, points, strict=True)]
    return build_graph(targets, release_of(change.release), change.skips, change.in_block)


def _sources(catalog: KnownSchema, targets: Sequence[Target]) -> dict[TableId, IndexId]:
    touched = dict.fromkeys(descriptor_of(target.element) for target in targets)
    tables = [catalog.descriptors.get(id_) for id_ in touched]
    return {table.id: table.primary.id for table in tables if isinstance(table, Table)}

"""The model checker on the plan of one statement, over the tables that it changes: EXPLAIN (DDL, VERIFY).

**Invariant:** what is checked is the plan that would be run, stage by stage, and the rollback from each of its stages.
Nothing is claimed of a part that no model knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from seachange.model.change import elements
from seachange.model.change.elements import Element, descriptor_of
from seachange.model.ids import ColumnId, DescriptorId, TableId
from seachange.planner.explain.names import Names
from seachange.planner.known_schema import KnownSchema
from seachange.planner.plan import ChangePlan
from seachange.planner.rules.release import CURRENT, Release
from seachange.verify.model.entries import NONE
from seachange.verify.model.explore import Exploration, Model, explore
from seachange.verify.model.layouts import LayoutModel, LayoutScope
from seachange.verify.model.program import Program, write_program
from seachange.verify.model.references import ReferenceModel, ReferenceScope
from seachange.verify.model.restored import RestoreModel, RestoreScope
from seachange.verify.model.row_state import Scope
from seachange.verify.model.rows import RowModel
from seachange.verify.model.shape import IndexKind, shape_of
from seachange.verify.model.switches import Switches

_NOTHING: Switches = frozenset()


@dataclass(frozen=True, slots=True)
class Subject:
    """A part of a plan in words, and the model that explores it, if there is one."""

    label: str
    build: Callable[[], Model] | None


@dataclass(frozen=True, slots=True)
class CheckedSubject:
    """Without a result: no model knows it, or time was up before it was begun."""

    label: str
    result: Exploration | None
    is_known: bool = True


def check_plan(
    plan: ChangePlan, catalog: KnownSchema, is_over: Callable[[], bool], release: Release = CURRENT
) -> Iterator[CheckedSubject]:
    """In order; the first problem ends the check. `is_over` says that no more time is left."""
    for subject in subjects_of(plan, catalog, release):
        if subject.build is None or is_over():
            yield CheckedSubject(subject.label, None, subject.build is not None)
            continue
        found = explore(subject.build(), is_over=is_over)
        yield CheckedSubject(subject.label, found)
        if found.problem is not None:
            return


def subjects_of(plan: ChangePlan, catalog: KnownSchema, release: Release = CURRENT) -> list[Subject]:
    """What the models cover of a plan, and of the change that follows by the same job."""
    changed = [target.element for target in plan.graph.targets]
    ids = {descriptor_of(element) for element in changed}
    parents = {e.parent_id for e in changed if isinstance(e, elements.ForeignKeyElement)}
    known = {id_: d for id_, d in catalog.descriptors.items() if id_ in ids | parents}
    program = write_program(catalog.with_descriptors(known), [plan], release, _NOTHING)
    names = Names(plan, catalog)
    found: list[Subject] = []
    for table_id in sorted(id_ for id_ in ids if _is_table(id_, program)):
        own = [e for e in changed if descriptor_of(e) == table_id]
        found += _rows(plan, program, TableId(table_id), own, names)
        found += _columns(program, TableId(table_id), own, names)
    found += _references(program, changed, names)
    if plan.then is not None and plan.between is not None:
        found += subjects_of(plan.then, plan.between, release)
    return found


def _is_table(id_: DescriptorId, program: Program) -> bool:
    whole = elements.TableElement(TableId(id_))
    return any(whole in version for version in program.versions)


# Rows, the entries of indexes, and constraints on rows.


def _rows(plan: ChangePlan, program: Program, table_id: TableId, own: list[Element], names: Names) -> Iterator[Subject]:
    """One for each set of columns that an index or a constraint of the change is about: their values are one value of
    the model."""
    sets: dict[frozenset[ColumnId], list[Element]] = {}
    for element in own:
        columns = _columns_of(element)
        if columns:
            sets.setdefault(columns, []).append(element)
    for columns, about in sets.items():
        label = ", ".join(names.label(element) for element in about)
        yield Subject(label, _row_builder(plan, program, table_id, columns))


def _columns_of(element: Element) -> frozenset[ColumnId]:
    match element:
        case elements.SecondaryIndex() | elements.UniqueIndex() | elements.PrimaryIndex():
            return frozenset(element.key)
        case elements.CheckConstraint():
            return frozenset(element.column_ids)
        case elements.ColumnNotNull():
            return frozenset({element.column_id})
        case elements.ConvertedColumn():
            replaced = () if element.in_place_of is None else (element.in_place_of,)
            return frozenset({element.column_id, *replaced})
        case _:
            return frozenset()


def _row_builder(
    plan: ChangePlan, program: Program, table_id: TableId, columns: frozenset[ColumnId]
) -> Callable[[], Model]:
    def build() -> Model:
        shape = shape_of(program, table_id, columns)
        by_value = any(kind in (IndexKind.UNIQUE, IndexKind.PRIMARY_BY_VALUE) for kind in shape.kinds)
        scope = Scope(rows=(0, NONE), values=1) if by_value else Scope()
        if shape.rules:
            scope = replace(scope, values=2, bad=True, nodes=1 if by_value else 2)
        if table_id in plan.change.empty:
            scope = replace(scope, rows=(NONE,) * len(scope.rows))
        return RowModel(program, table_id, columns, scope, _NOTHING)

    return build


# Columns that come or go without a rewrite of rows.


def _columns(program: Program, table_id: TableId, own: list[Element], names: Names) -> Iterator[Subject]:
    for element in own:
        if isinstance(element, elements.RestoredColumn):
            yield Subject(names.label(element), _restored_builder(program, element))
        if isinstance(element, elements.ColumnElement) and not element.hidden:
            yield Subject(names.label(element), _column_builder(program, table_id, element.column_id))


def _column_builder(program: Program, table_id: TableId, column_id: ColumnId) -> Callable[[], Model]:
    return lambda: LayoutModel(program, (table_id, column_id), LayoutScope(), _NOTHING)


def _restored_builder(program: Program, column: elements.RestoredColumn) -> Callable[[], Model]:
    return lambda: RestoreModel(program, column.column_place, RestoreScope(), _NOTHING)


# Foreign keys.


def _references(program: Program, changed: list[Element], names: Names) -> Iterator[Subject]:
    for element in changed:
        if isinstance(element, elements.ForeignKeyElement):
            is_own = element.parent_id == element.table_id
            yield Subject(names.label(element), None if is_own else _reference_builder(program, element))


def _reference_builder(program: Program, key: elements.ForeignKeyElement) -> Callable[[], Model]:
    def is_other(element: Element) -> bool:
        return isinstance(element, elements.ForeignKeyElement) and element.constraint_id != key.constraint_id

    versions = [{e: state for e, state in version.items() if not is_other(e)} for version in program.versions]
    own = replace(program, versions=versions)
    return lambda: ReferenceModel(own, ReferenceScope(), _NOTHING)

"""Which elements a revert of published changes leaves: the definitions of now, with the changes taken out again.

A change is known by the versions before and after it. Its elements that came are taken out, and those that went are put
back, the newest change first. Whatever was done later to the same elements, or refers to them, depends on the change.

**Invariant:** pure. What a revert leaves follows from the definitions of now and the versions around each change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from seachange.model.change import elements
from seachange.model.change.elements import Element, descriptor_of
from seachange.model.ids import ColumnId, ConstraintId, DescriptorId, IndexId, TableId
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.descriptor import Table
from seachange.model.schema.expression import Expression
from seachange.model.schema.objects import Descriptor
from seachange.model.states import State
from seachange.planner.builders.draft import at_rest
from seachange.planner.builders.substitution import Place, Substitution
from seachange.planner.elements.registry import SPECS
from seachange.planner.known_schema import PastChange
from seachange.planner.object_parts import decompose

Parts = Mapping[Element, State]
# What an element is one of: there is one element of its kind for each of these.
Slot = tuple[object, ...]

# The fields that tell elements of one kind apart; the others say what the element is like.
_SLOT_FIELDS = ("descriptor_id", "table_id", "column_id", "index_id", "constraint_id", "parent_id")
_MORE_FIELDS: dict[type[Element], tuple[str, ...]] = {
    elements.Privileges: ("role",),
    elements.Comment: ("part",),
    elements.TableParameter: ("name",),
    elements.EnumValue: ("type_id", "value_id"),
    elements.EnumLabel: ("type_id", "value_id"),
}
# These go with the object or the part that they are on.
_LABELS = (elements.Owner, elements.Privileges, elements.Comment, elements.ColumnDown)


@dataclass(frozen=True, slots=True)
class ChangedParts:
    """What a change did to elements."""

    change: PastChange
    came: Parts
    went: Parts


@dataclass(frozen=True, slots=True)
class Reversal:
    """`changes` are those that are reverted, the newest first; `gone` and `back` the elements that it takes away from
    now, and puts back. `dependents` are changes that depend on these and are not reverted; `is_whole`: there is nothing
    in the way that no change of the history explains."""

    changes: tuple[PastChange, ...]
    gone: Parts
    back: Parts
    # The last of these changes with which an element went that comes back.
    went_with: Mapping[Element, PastChange]
    # The last of them with which a column went, in whatever form.
    columns_went_with: Mapping[Place, PastChange]
    # How a change has computed the columns of now, by its id.
    computed: Mapping[tuple[int, Place], Expression]
    # The column that was converted, and the change, by the columns that came of it and are there no longer.
    passed: Mapping[Place, tuple[Place, PastChange]]
    dependents: tuple[PastChange, ...]
    is_whole: bool


def slot_of(element: Element) -> Slot:
    kind = type(element)
    names = (*_SLOT_FIELDS, *_MORE_FIELDS.get(kind, ()))
    return (kind, descriptor_of(element), *(getattr(element, name, None) for name in names))


def revert(now: Parts, history: Sequence[PastChange], cascade: bool) -> Reversal:
    """Reverts the first change of the history, and with `cascade` those that depend on it."""
    known = _with_last_ids([_parts_of(change) for change in history], now)
    chosen = {0}
    while True:
        wanted, blamed = _take_out(now, [known[n] for n in sorted(chosen, reverse=True)], known)
        found = (blamed | _back_since(chosen, known)) - chosen
        if not cascade or not found:
            break
        chosen |= found
    gone = {e: s for e, s in now.items() if wanted.get(e) is not s}
    back = {e: s for e, s in wanted.items() if now.get(e) is not s}
    for element in _parts_of_rules(now, [e for e in back if isinstance(e, _RULES)]):
        # A constraint that comes back has another id, and so have its parts.
        gone[element], back[element] = now[element], wanted[element]
    newest_first = [known[n] for n in sorted(chosen, reverse=True)]
    went_with: dict[Element, PastChange] = {}
    columns: dict[Place, PastChange] = {}
    for parts in newest_first:
        went_with = dict.fromkeys(parts.went, parts.change) | went_with
        columns = dict.fromkeys(_columns_in(parts.went), parts.change) | columns
    reverted = tuple(parts.change for parts in newest_first)
    dependents = tuple(known[n].change for n in sorted(found))
    passed = _passed(newest_first, now)
    computed = _computed([_parts_of(change) for change in history])
    return Reversal(reverted, gone, back, went_with, columns, computed, passed, dependents, blamed.isdisjoint(chosen))


def _back_since(chosen: Collection[int], known: Sequence[ChangedParts]) -> set[int]:
    """Later changes of columns that went with one of these: they have come back since, and may have gone again, with
    other values."""
    found: set[int] = set()
    for number in chosen:
        whole = {e.table_id for e in known[number].went if isinstance(e, elements.TableElement)}
        went = {place for place in _columns_in(known[number].went) if place[0] not in whole}
        for later in range(number + 1, len(known)):
            if not went.isdisjoint(_columns_in((*known[later].came, *known[later].went))):
                found.add(later)
    return found


def _computed(history: Sequence[ChangedParts]) -> dict[tuple[int, Place], Expression]:
    again, found = Substitution(columns=_columns_again(history)), dict[tuple[int, Place], Expression]()
    for parts in history:
        for host in map(again.of, parts.came):
            if isinstance(host, elements.ColumnElement) and (expression := host.up or host.origin) is not None:
                found[parts.change.id, host.column_place] = expression
    return found


def _columns_in(parts: Iterable[Element]) -> set[Place]:
    return {element.column_place for element in parts if isinstance(element, elements.AnyColumn)}


def _passed(reverted: Sequence[ChangedParts], now: Parts) -> dict[Place, tuple[Place, PastChange]]:
    there, found = _columns_in(now), dict[Place, tuple[Place, PastChange]]()
    for parts in reverted:
        old = {(e.table_id, e.name): e.column_id for e in parts.went if isinstance(e, elements.ColumnName)}
        new = {(e.table_id, e.column_id): e.name for e in parts.came if isinstance(e, elements.ColumnName)}
        made = [e for e in parts.came if isinstance(e, elements.ColumnElement) and (e.up or e.origin)]
        for place in [e.column_place for e in made if e.column_place not in there]:
            before = old.get((place[0], new.get(place, "")))
            if before is not None:
                found[place] = ((place[0], before), parts.change)
    return found


def _with_last_ids(known: Sequence[ChangedParts], now: Parts) -> list[ChangedParts]:
    """An index that was written again, as it was, is the same one under another id: the id that it has now."""
    columns = Substitution(columns=_columns_again(known))
    hosts = {e.column_place: e for e in now if isinstance(e, elements.ColumnElement)}
    known = [_net(p.change, _moved(p.came, columns, hosts), _moved(p.went, columns, hosts)) for p in known]
    last: dict[IndexId, IndexId] = {}
    rules: dict[tuple[TableId, ConstraintId], ConstraintId] = {}
    steps = [(parts.went, parts.came) for parts in known]
    # The first part of a revert has written it again, too.
    newest = [{e: s for e, s in parts.came.items() if e not in now} for parts in known]
    # So does a revert of what had taken it away, but not another change that has made the same again.
    made = {e for parts in known if not parts.change.is_revert for e in parts.came}
    there = {e: s for e, s in now.items() if e not in made}
    for then, later in (*steps, *((parts, there) for parts in newest)):
        step = Substitution()
        step.find_counterparts(then, later)
        last = {old: step.indexes.get(new, new) for old, new in last.items()} | step.indexes
        rules = {old: step.constraints.get((old[0], new), new) for old, new in rules.items()} | step.constraints
    moved = Substitution(indexes=last, constraints=rules)
    return [_net(parts.change, _moved(parts.came, moved), _moved(parts.went, moved)) for parts in known]


def _columns_again(known: Sequence[ChangedParts]) -> dict[Place, ColumnId]:
    """By columns that went, the one that has come in its place with the revert of that change."""
    by_id = {parts.change.id: parts for parts in known}
    found: dict[Place, ColumnId] = {}
    for parts in known:
        reverted = by_id.get(parts.change.reverts) if parts.change.reverts is not None else None
        if reverted is None:
            continue
        went = [e for e in (*reverted.went, *parts.went) if isinstance(e, elements.ColumnName)]
        names = {(e.table_id, e.column_id): e.name for e in went}
        lost = [e for e in reverted.went if isinstance(e, elements.ColumnType)]
        given = {(e.table_id, e.column_id): e.type for e in parts.came if isinstance(e, elements.ColumnType)}
        for name in [e for e in parts.came if isinstance(e, elements.ColumnName)]:
            place = (name.table_id, name.column_id)
            for old in [
                (e.table_id, e.column_id) for e in lost if (e.table_id, e.type) == (place[0], given.get(place))
            ]:
                if old != place and names.get(old) == name.name:
                    found = {of: place[1] if (of[0], known_as) == old else known_as for of, known_as in found.items()}
                    found[old] = place[1]
    return found


def _moved(parts: Parts, moved: Substitution, hosts: Mapping[Place, Element] | None = None) -> Parts:
    """A column that has come back is the same one, whatever rows had in it when it was new."""
    found = {moved.of(element): state for element, state in parts.items()}
    if hosts is None:
        return found
    return {hosts.get(e.column_place, e) if isinstance(e, elements.ColumnElement) else e: s for e, s in found.items()}


def _net(change: PastChange, came: Parts, went: Parts) -> ChangedParts:
    return ChangedParts(
        change,
        {e: s for e, s in came.items() if went.get(e) is not s},
        {e: s for e, s in went.items() if came.get(e) is not s},
    )


def _parts_of(change: PastChange) -> ChangedParts:
    came: dict[Element, State] = {}
    went: dict[Element, State] = {}
    for before, after in change.versions:
        was, now = _parts(before), _parts(after)
        came |= {e: s for e, s in now.items() if was.get(e) is not s}
        went |= {e: s for e, s in was.items() if now.get(e) is not s}
    return ChangedParts(change, came, went)


def _parts(descriptor: Descriptor | None) -> Parts:
    """With both ends of a foreign key, which is dropped at both."""
    if descriptor is None:
        return {}
    parts = dict(decompose(at_rest(descriptor)))
    if isinstance(descriptor, Table):
        keys = [(e, s) for e, s in parts.items() if isinstance(e, elements.ForeignKeyElement)]
        parts |= {elements.ForeignKeyParent(k.parent_id, k.table_id, k.constraint_id): s for k, s in keys}
    return parts


def _take_out(
    now: Parts, newest_first: Sequence[ChangedParts], known: Sequence[ChangedParts]
) -> tuple[dict[Element, State], set[int]]:
    """What is left of the definitions, and the numbers of the changes that what is in the way comes from."""
    wanted, slots = dict(now), {slot_of(element) for element in now}
    blamed: set[Slot] = set()
    for parts in newest_first:
        for element, state in parts.came.items():
            if wanted.get(element) is state:
                del wanted[element]
                slots.discard(slot_of(element))
            elif not isinstance(element, _LABELS) or slot_of(element) in slots:
                blamed.add(slot_of(element))
        for element, state in parts.went.items():
            if wanted.get(element) is state:
                continue
            if isinstance(element, elements.ForeignKeyParent) and wanted.get(element) is State.ENFORCED:
                wanted[element] = state
                continue
            if isinstance(element, elements.ForeignKeyElement) and _not_valid(element) in wanted:
                # It came back with its table, to be validated.
                del wanted[_not_valid(element)]
                wanted[element] = state
                continue
            if slot_of(element) in slots:
                blamed.add(slot_of(element))
            else:
                wanted[element] = state
                slots.add(slot_of(element))
    lost = _lost(now, wanted)
    for element in [e for e in wanted if e in now and lost.is_needed_by(e)]:
        if isinstance(element, _LABELS):
            del wanted[element]
        else:
            blamed.add(slot_of(element))
    blamed |= {slot_of(element) for element in _colliding(now, wanted)}
    touched = [{slot_of(e) for e in (*parts.came, *parts.went)} for parts in known]
    # The newest one that has done something to the element.
    numbers = {max((n for n, slots in enumerate(touched) if slot in slots), default=0) for slot in blamed}
    return wanted, numbers | _takers(now, wanted, known)


def _takers(now: Parts, wanted: Parts, known: Sequence[ChangedParts]) -> set[int]:
    """The changes with which columns went, for good or for others in their place, that what comes back is about."""
    there = _columns_in(wanted)
    back = [e for e in wanted if e not in now and not isinstance(e, _LABELS)]
    missing = {place for element in back for place in _columns_of(element)} - there
    went = [_columns_in(parts.went) for parts in known]
    return {max((n for n, places in enumerate(went) if place in places), default=0) for place in missing}


def _columns_of(element: Element) -> set[Place]:
    table_id = getattr(element, "table_id", None)
    ids = {*getattr(element, "column_ids", ()), getattr(element, "column_id", None)} - {None}
    return {(table_id, column_id) for column_id in ids} if table_id is not None else set()


_RULES = elements.CheckConstraint | elements.ForeignKeyElement


def _parts_of_rules(
    now: Parts, rules: Sequence[elements.CheckConstraint | elements.ForeignKeyElement]
) -> list[Element]:
    places = {(rule.table_id, rule.constraint_id) for rule in rules}
    found: list[Element] = []
    for element in now:
        match element:
            case elements.ConstraintName() | elements.ForeignKeyParent():
                place = (element.table_id, element.constraint_id)
            case elements.Comment(descriptor_id=table_id, part=(ObjectKind.CONSTRAINT, id_)):
                place = (TableId(table_id), ConstraintId(id_))
            case _:
                continue
        found += [element] if place in places else []
    return found


def _not_valid(key: elements.ForeignKeyElement) -> elements.ForeignKeyElement:
    return replace(key, not_valid=True)


@dataclass(frozen=True, slots=True)
class _Lost:
    """What is no longer there for others to refer to."""

    descriptors: frozenset[DescriptorId]
    columns: frozenset[tuple[TableId, ColumnId]]
    indexes: frozenset[tuple[TableId, IndexId]]

    def is_needed_by(self, element: Element) -> bool:
        if descriptor_of(element) in self.descriptors or self._has_lost_reference(element):
            return True
        table_id = getattr(element, "table_id", None)
        own = [*getattr(element, "column_ids", ()), getattr(element, "column_id", None)]
        used = [(table_id, column_id) for column_id in own]
        match element:
            case elements.ViewQuery(column_uses=uses):
                used += uses
            case elements.ForeignKeyElement(parent_id=parent_id, parent_index_id=index_id):
                return (parent_id, index_id) in self.indexes or not self.columns.isdisjoint(used)
            case elements.Comment(descriptor_id=id_, part=part) if part is not None:
                return (id_, part[1]) in self.columns or (id_, part[1]) in self.indexes
            case _:
                pass
        return not self.columns.isdisjoint(used)

    def _has_lost_reference(self, element: Element) -> bool:
        if isinstance(element, elements.ViewQuery):
            return not self.descriptors.isdisjoint(element.relation_ids)
        if isinstance(element, elements.ForeignKeyElement):
            return element.parent_id in self.descriptors
        reference = SPECS[type(element)].refers
        held = getattr(element, reference.field, None) if reference is not None else None
        ids: Collection[object] = held if isinstance(held, tuple) else (held,)
        return not self.descriptors.isdisjoint(ids)


def _lost(now: Parts, wanted: Parts) -> _Lost:
    gone = [element for element in now if element not in wanted]
    columns = [e for e in gone if isinstance(e, elements.ColumnElement)]
    indexes = [e for e in gone if isinstance(e, elements.AnyIndex)]
    return _Lost(
        frozenset(descriptor_of(e) for e in gone if isinstance(e, elements.AnyObject)),
        frozenset((e.table_id, e.column_id) for e in columns),
        frozenset((e.table_id, e.index_id) for e in indexes),
    )


def _colliding(now: Parts, wanted: Parts) -> Iterator[Element]:
    """Elements of now that have a name which comes back. No statement names a hidden column."""
    hidden = {e.column_place for e in wanted if isinstance(e, elements.ColumnElement) and e.hidden}
    shown = [e for e in wanted if not (isinstance(e, elements.ColumnName) and (e.table_id, e.column_id) in hidden)]
    back = {name for element in shown if element not in now and (name := _name(element)) is not None}
    yield from (e for e in shown if e in now and _name(e) in back)


def _name(element: Element) -> tuple[object, ...] | None:
    match element:
        case elements.ColumnName(table_id=table_id, name=name):
            return ("column", table_id, name)
        case elements.ConstraintName(table_id=table_id, name=name):
            return ("constraint", table_id, name)
        case elements.NamespaceElement(database=database, schema=schema, name=name):
            return ("object", database, schema, name)
        case _:
            return None

"""Statuses, waits and ops in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seachange.model.change import elements
from seachange.model.change.elements import Element, descriptor_of
from seachange.model.change.ops import BackfillIndexes, CollectIndexes, Op, OpType, RestoreColumns, SetState, Validate
from seachange.model.change.targets import STATE_OF, Status
from seachange.model.ids import DescriptorId, TableId
from seachange.model.states import State
from seachange.planner.elements.rule import OBJECTS
from seachange.planner.explain.names import Names
from seachange.planner.stages import Stage

# A status is shown by its state, which is what statements and other pages know, and by the work that was done in it.
_DONE: dict[Status, str] = {Status.BACKFILLED: "complete", Status.VALIDATED: "proven", Status.PROVEN: "proven"}
LEGEND: dict[Status, str] = {
    Status.BACKFILLED: "WRITE_ONLY (complete): the state is WRITE_ONLY, and every row has its entry",
    Status.VALIDATED: "ENFORCED (proven): the state is ENFORCED, and all rows are shown to meet it",
    Status.PROVEN: "VALIDATING (proven): the state is VALIDATING, and all rows were shown to meet it",
}

_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")
_RETENTION = "the time for which history is kept (seachange.retention), until no transaction can read the data"


def status_name(status: Status) -> str:
    done = _DONE.get(status)
    return f"{STATE_OF[status].value} ({done})" if done is not None else STATE_OF[status].value


def enumerate_words(words: Sequence[str]) -> str:
    """
    >>> enumerate_words(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def count_of(number: int, noun: str, plural: str | None = None) -> str:
    """
    >>> count_of(1, "version"), count_of(2, "index", "indexes")
    ('1 version', '2 indexes')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def bytes_in_words(number: int | None) -> str:
    """
    >>> bytes_in_words(0), bytes_in_words(1), bytes_in_words(1536), bytes_in_words(None)
    ('0 bytes', '1 byte', '1.5 kB', 'unknown')
    """
    if number is None:
        return "unknown"
    amount, unit = float(number), 0
    while amount >= 1024 and unit + 1 < len(_UNITS):
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.1f} {_UNITS[unit]}" if unit else count_of(number, "byte")


def waits(stage: Stage, names: Names, versions: dict[DescriptorId, int]) -> list[str]:
    """What has to have happened before the stage begins. `versions` are those that are published by then."""
    known = [f"of {names.descriptor(id_)} to know version {versions[id_]}" for id_ in stage.raises]
    found = [f"every writer {enumerate_words(known)} (drain, then raise min_version)"] if known else []
    return found + ([_RETENTION] if stage.type is OpType.COLLECTION else [])


def ops_in_words(ops: Iterable[Op], names: Names, versions: dict[DescriptorId, int]) -> list[str]:
    """`versions` are those that are published with the stage."""
    changed: dict[DescriptorId, int] = {}
    gone: set[DescriptorId] = set()
    found: list[str] = []
    for op in ops:
        match op:
            case SetState():
                id_ = descriptor_of(op.element)
                changed[id_] = changed.get(id_, 0) + 1
                if isinstance(op.element, OBJECTS) and op.state is State.ABSENT:
                    gone.add(id_)
            case BackfillIndexes():
                built = enumerate_words([names.index(op.table_id, index) for index in op.index_ids])
                source = names.index(op.table_id, op.source_id)
                found.append(f"build {built} from one scan of {source}, as of the raise of min_version")
            case Validate():
                found.append(f"show that {claim(op.element, names)}")
            case RestoreColumns():
                columns = enumerate_words([names.column(op.table_id, column) for column in op.column_ids])
                found.append(f"write the values of {columns} as of {op.as_of} into the rows of now")
            case CollectIndexes():
                deleted = enumerate_words([names.index(op.table_id, index) for index in op.index_ids])
                found.append(f"delete the data of {deleted}")
    published = [
        f"publish {'the end' if id_ in gone else f'version {versions[id_]}'} of {names.descriptor(id_)} "
        f"({count_of(number, 'element')})"
        for id_, number in changed.items()
    ]
    return published + found


def claim(element: Element, names: Names) -> str:
    """What a validation shows."""
    match element:
        case elements.UniqueIndex():
            key = enumerate_words([names.column(element.table_id, column) for column in element.key])
            index = names.index(element.table_id, element.index_id)
            return f"no two rows of {names.object(element.table_id)} agree in {key} (by unique index {index})"
        case elements.ColumnNotNull():
            column = names.column(element.table_id, element.column_id)
            return f"no row of {names.object(element.table_id)} has NULL in column {column}"
        case elements.CheckConstraint():
            check = names.constraint(element.table_id, element.constraint_id)
            return f"every row of {names.object(element.table_id)} meets check {check}"
        case elements.ForeignKeyElement():
            parent = names.object(TableId(element.parent_id))
            return f"every row of {names.object(element.table_id)} has its parent in {parent}"
        case _:
            return f"{names.label(element)} holds"

"""ADD PRIMARY KEY and ALTER PRIMARY KEY: another primary index beside the old one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from seachange import errors
from seachange.model import statements
from seachange.model.change import elements
from seachange.model.change.targets import Goal
from seachange.model.ids import ColumnId, IndexId, TableId
from seachange.model.object_kind import ObjectKind
from seachange.planner.builders.draft import Draft
from seachange.planner.builders.drops import drop_column_parts, drop_comments, drop_foreign_key, note_references
from seachange.planner.builders.index import key_columns, name_key
from seachange.planner.builders.rebuild import add_index, remove_index, repoint_foreign_keys, swap_index
from seachange.planner.builders.row_id import define_row_id, find_row_id
from seachange.planner.names import choose_name


def add_primary_key(
    draft: Draft, table_id: TableId, definition: statements.KeyDefinition, using: elements.UniqueIndex | None = None
) -> None:
    """The hidden key of a table for which none was declared gives way. `using` is the unique index it takes over."""
    refuse_second_key(draft, table_id)
    old, key = draft.primary(table_id), key_columns(draft, table_id, definition.columns)
    # Its generated name goes with it.
    freed = draft.index_name(old).name
    if using is None and freed == (definition.name or choose_name(draft.name_of(table_id), (), "pkey", ())):
        label = freed
    elif using is None:
        label = name_key(draft, table_id, definition, "pkey")
    else:
        label = definition.name or draft.index_name(using).name
    if key == old.key:
        # The same key under another name.
        draft.replace(draft.index_name(old), elements.IndexName(table_id, old.index_id, label))
        if using is not None:
            remove_index(draft, using)
        return
    change_key(draft, table_id, key, label, using)


def refuse_second_key(draft: Draft, table_id: TableId) -> None:
    old = draft.primary(table_id)
    is_declared = bool(draft.select(elements.KeyConstraint, table_id=table_id, index_id=old.index_id))
    if is_declared and table_id not in draft.key_goes:
        name = draft.name_of(table_id)
        detail = f'multiple primary keys for table "{name}" are not allowed'
        raise errors.InvalidTableDefinition(name=name, detail=detail)


@contextmanager
def replacing_key(
    draft: Draft, table_id: TableId, actions: Sequence[statements.AlterAction]
) -> Iterator[list[statements.AlterAction]]:
    """The actions in an order in which they can be taken: where a primary key goes and another comes, the old one has
    its columns until then."""
    goes = [action for action in actions if _drops_key(draft, table_id, action)]
    if not goes or loses_key(draft, table_id, actions):
        yield list(actions)
        return
    for action in goes:
        _let_go(draft, table_id, action)
    draft.key_goes.add(table_id)
    columns = [action for action in goes if isinstance(action, statements.DropColumn)]
    _refuse_same_name(actions, columns)
    yield [*(action for action in actions if action not in columns), *columns]
    draft.key_goes.discard(table_id)


def loses_key(draft: Draft, table_id: TableId, actions: Sequence[statements.AlterAction]) -> bool:
    """Whether the table has no primary key afterwards, and has one before."""
    goes = any(_drops_key(draft, table_id, action) for action in actions)
    return goes and not any(_adds_key(action) for action in actions)


def _refuse_same_name(actions: Sequence[statements.AlterAction], columns: Sequence[statements.DropColumn]) -> None:
    added = {action.column.name for action in actions if isinstance(action, statements.AddColumn)}
    for column in columns:
        if column.name in added:
            raise errors.FeatureNotSupported(
                feature=f'a primary key column "{column.name}" in the place of another of that name',
                instead="Add it under another name, and rename it afterwards.",
            )


def _adds_key(action: statements.AlterAction) -> bool:
    match action:
        case statements.AddColumn(keys=keys):
            return any(key.primary for key in keys)
        case statements.AddConstraint(constraint=statements.KeyDefinition(primary=True)):
            return True
        case _:
            return False


def _drops_key(draft: Draft, table_id: TableId, action: statements.AlterAction) -> bool:
    if not isinstance(action, statements.DropColumn | statements.DropConstraint):
        return False
    primary = draft.primary(table_id)
    if not draft.select(elements.KeyConstraint, table_id=table_id, index_id=primary.index_id):
        return False
    match action:
        case statements.DropColumn(name=name):
            return any(draft.column_name(table_id, column_id) == name for column_id in primary.key)
        case statements.DropConstraint(name=name):
            return draft.index_name(primary).name == name


def _let_go(draft: Draft, table_id: TableId, action: statements.AlterAction) -> None:
    """Foreign keys that refer to the old key go with it, or stand in its way."""
    if not isinstance(action, statements.DropColumn | statements.DropConstraint):
        return
    primary = draft.primary(table_id)
    kind = "column" if isinstance(action, statements.DropColumn) else "constraint"
    note_references(draft, primary, action.cascade, f"{kind} {action.name} of table {draft.name_of(table_id)}")
    for key in draft.select(elements.ForeignKeyElement, parent_id=table_id, parent_index_id=primary.index_id):
        drop_foreign_key(draft, key)


def drop_primary_key(draft: Draft, table_id: TableId, cascade: bool, what: str) -> None:
    """Rows are known by their hidden numbers then, which those that are there were given by a change before."""
    old = draft.primary(table_id)
    note_references(draft, old, cascade, what)
    if table_id in draft.key_goes:
        return
    for key in draft.select(elements.ForeignKeyElement, parent_id=table_id, parent_index_id=old.index_id):
        drop_foreign_key(draft, key)
    column_id = find_row_id(draft, table_id)
    if column_id is None and not draft.has_no_rows(table_id):
        raise errors.FeatureNotSupported(
            feature=f"dropping {what}, and with it the primary key of a table with rows, beside other statements",
            instead="Drop it by an ALTER TABLE that is sent by itself.",
        )
    # One that the same statement adds is no target any more once it is removed.
    replaced_id = old.replaces_id if old in draft.targets else old.index_id
    drop_comments(draft, table_id, (ObjectKind.INDEX, old.index_id))
    remove_index(draft, old)
    name = name_key(draft, table_id, statements.KeyDefinition(()), "pkey")
    new = elements.PrimaryIndex(
        table_id,
        IndexId(next(draft.ids)),
        (define_row_id(draft, table_id) if column_id is None else column_id,),
        rebuilt_ids=old.rebuilt_ids,
        replaces_id=replaced_id,
    )
    add_index(draft, new, name, constraint=False)
    rebuild_secondary(draft, table_id)


def alter_primary_key(draft: Draft, table_id: TableId, action: statements.AlterPrimaryKey) -> None:
    key = key_columns(draft, table_id, action.columns)
    old = draft.primary(table_id)
    if key != old.key:
        change_key(draft, table_id, key, draft.index_name(old).name, None)


def change_key(
    draft: Draft, table_id: TableId, key: tuple[ColumnId, ...], name: str, using: elements.UniqueIndex | None
) -> None:
    old = draft.primary(table_id)
    for column_id in key:
        if column_id in old.rebuilt_ids:
            name = draft.column_name(table_id, column_id)
            raise errors.FeatureNotSupported(
                feature=f'a primary key on column "{name}", whose values are computed by the same transaction,',
                instead="Commit the column first, then make it the primary key.",
            )
        require_not_null(draft, table_id, column_id)
    # An index that the same transaction adds has proven nothing yet, and gives way before it could.
    forget_proof(draft, old)
    is_proven = using is not None and using not in draft.targets
    proof_id = using.index_id if using is not None and is_proven else prove_key(draft, table_id, key)
    new = elements.PrimaryIndex(
        table_id,
        IndexId(next(draft.ids)),
        key,
        rebuilt_ids=old.rebuilt_ids,
        replaces_id=old.replaces_id if old in draft.targets else old.index_id,
        proof_id=proof_id,
    )
    _retire(draft, old, new, name)
    if using is not None:
        remove_index(draft, using)
    rebuild_secondary(draft, table_id)


def require_not_null(draft: Draft, table_id: TableId, column_id: ColumnId) -> None:
    if not draft.select(elements.ColumnNotNull, table_id=table_id, column_id=column_id):
        draft.add(elements.ColumnNotNull(table_id, column_id))


def prove_key(draft: Draft, table_id: TableId, key: tuple[ColumnId, ...]) -> IndexId | None:
    """The index that shows the key of a primary index to come to be one; without rows, none is needed."""
    known = _existing_proof(draft, table_id, key)
    if known is not None:
        return known.index_id
    return None if draft.has_no_rows(table_id) else _prove(draft, table_id, key)


def forget_proof(draft: Draft, primary: elements.PrimaryIndex) -> None:
    """Of a primary index that was to come, and gives way to another before it has."""
    transient = [target.element for target in draft.targets.values() if target.goal is Goal.TRANSIENT]
    parts = [e for e in transient if isinstance(e, elements.UniqueIndex | elements.IndexName | elements.IndexData)]
    for part in parts:
        if (part.table_id, part.index_id) == (primary.table_id, primary.proof_id):
            draft.cancel(part)


def _existing_proof(
    draft: Draft, table_id: TableId, key: tuple[ColumnId, ...]
) -> elements.UniqueIndex | elements.PrimaryIndex | None:
    """A public unique key among these columns."""
    keys: list[elements.PrimaryIndex | elements.UniqueIndex] = [draft.primary(table_id)]
    keys += draft.select(elements.UniqueIndex, table_id=table_id)
    for index in keys:
        whole = isinstance(index, elements.PrimaryIndex) or index.where is None
        if index not in draft.targets and whole and set(index.key) <= set(key):
            return index
    return None


def _prove(draft: Draft, table_id: TableId, key: tuple[ColumnId, ...]) -> IndexId:
    """A unique index that is there only for the duration of the change."""
    id_ = IndexId(next(draft.ids))
    taken = draft.relations_in(draft.schema_named(table_id))
    name = choose_name(draft.name_of(table_id), [draft.column_name(table_id, c) for c in key], "proof", taken)
    draft.add(elements.UniqueIndex(table_id, id_, key), Goal.TRANSIENT)
    draft.add(elements.IndexName(table_id, id_, name), Goal.TRANSIENT)
    draft.add(elements.IndexData(table_id, id_), Goal.TRANSIENT)
    return id_


def _retire(draft: Draft, old: elements.PrimaryIndex, new: elements.PrimaryIndex, name: str) -> None:
    """The old key goes on as a unique index; a hidden one goes with its column."""
    table_id = old.table_id
    was_declared = bool(draft.select(elements.KeyConstraint, table_id=table_id, index_id=old.index_id))
    remove_index(draft, old)
    add_index(draft, new, name, constraint=True)
    if was_declared and table_id not in draft.key_goes:
        label = [draft.column_name(table_id, c) for c in old.key]
        taken = draft.relations_in(draft.schema_named(table_id))
        kept = elements.UniqueIndex(table_id, IndexId(next(draft.ids)), old.key)
        draft.implied[kept] = f"the key of index {name} was unique already"
        add_index(draft, kept, choose_name(draft.name_of(table_id), label, "key", taken), constraint=True)
        repoint_foreign_keys(draft, old, kept)
    elif not was_declared:
        for column_id in old.key:
            drop_column_parts(draft, table_id, column_id)


def rebuild_secondary(draft: Draft, table_id: TableId) -> None:
    """Their entries end in the primary key, so each is rebuilt."""
    for index in draft.indexes(table_id):
        if index in draft.targets:
            continue
        successor = replace(index, index_id=IndexId(next(draft.ids)))
        if isinstance(successor, elements.UniqueIndex):
            draft.implied[successor] = f"the key of index {draft.index_name(index).name} is unique already"
        swap_index(draft, index, successor)

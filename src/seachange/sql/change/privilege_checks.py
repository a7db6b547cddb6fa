"""Privilege checks of statements (`model/statements/required_privileges.py`): from names to objects, and the privileges
required on them.

What a statement reads and writes is checked when it does so; everything else here, before planning, so that a role
without privileges learns nothing about the objects that block the change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from seachange import errors
from seachange.model import statements
from seachange.model.object_kind import VIEWS, ObjectKind
from seachange.model.relation import RelationName
from seachange.model.schema.access import PRIVILEGES
from seachange.model.schema.actor import ROOT
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import (
    DEFAULT_DATABASE,
    DEFAULT_SCHEMA,
    Database,
    Descriptor,
    EnumType,
    Role,
    Schema,
    Shape,
    View,
)
from seachange.model.schema.rights import OWNER, MemberOf, OnObject, OnUnsaid, Right, RoleAttribute
from seachange.model.schema.temporary import OWN_SCHEMA, is_temporary
from seachange.model.statements.required_privileges import CREATEDB, GRANT_OPTION, SUPERUSER, Need, Place, needs_of
from seachange.sql.change.object_access import DROPS, describe, drop_right, kind_of
from seachange.sql.port.port import TransactionPort
from seachange.sql.query.databases import relations_named

Found = Iterator[tuple[Right, str]]
Finder = Callable[[statements.Statement, Need, TransactionPort], Found]

# Privileges on a view have the names of table privileges.
_GRANTED_AS = dict.fromkeys(VIEWS, ObjectKind.TABLE)
_ATTRIBUTES = {SUPERUSER: "superuser", CREATEDB: "create_database"}
_DENIALS = {
    SUPERUSER: "permission denied: only superusers may do that",
    CREATEDB: "permission denied to create database",
}


def check_needs(statement: statements.Statement, port: TransactionPort) -> None:
    """Raises 42501 unless the role has the required privileges on the named objects. Missing objects are reported
    later, by the code that looks them up."""
    # The bootstrap superuser has every privilege.
    if port.rights.actor is ROOT:
        return
    for need in needs_of(statement):
        finder = _FINDERS.get(need.place)
        for right, denial in finder(statement, need, port) if finder is not None else ():
            port.rights.require(right, denial)


# Names.


def named_objects(statement: statements.Statement) -> tuple[ObjectKind, tuple[RelationName, ...]]:
    match statement:
        case statements.AlterTable(table=table) | statements.CreateIndex(table=table):
            return ObjectKind.TABLE, (table,)
        case statements.DropTable(tables=tables) | statements.TruncateTables(tables=tables):
            return ObjectKind.TABLE, tables
        case statements.DropIndex(indexes=indexes):
            return ObjectKind.INDEX, indexes
        case statements.AlterSequence(name=name):
            return ObjectKind.SEQUENCE, (name,)
        case statements.RefreshView(name=name):
            return ObjectKind.MATERIALIZED_VIEW, (name,)
        case (
            statements.AddEnumValue(type=type_)
            | statements.RenameEnumValue(type=type_)
            | statements.DropEnumValue(type=type_)
        ):
            return ObjectKind.TYPE, (type_,)
        case (
            statements.RenameObject(kind, name)
            | statements.MoveObject(kind, name)
            | statements.ChangeOwner(kind, name)
            | statements.CommentOn(kind, name)
        ):
            return kind, (name,)
        case statements.DropObjects(kind, names):
            return kind, names
        case statements.Grant(kind=kind, names=names, all_in_schema=False):
            return kind, names
        case statements.NeedlessStatement(kind=kind, name=name) if kind is not None and name is not None:
            return kind, (name,)
        case _:
            return ObjectKind.TABLE, ()


def new_name(statement: statements.Statement) -> RelationName | None:
    """The name of the object that the statement creates."""
    match statement:
        case statements.CreateTable(table=name) | statements.UndropTable(table=name):
            return name
        case statements.CreateSequence(name=name) | statements.CreateEnum(name=name) | statements.CreateView(name=name):
            return name
        case statements.CreateMaterializedView(view=view):
            return view.name
        case _:
            return None


def _find(kind: ObjectKind, name: RelationName, port: TransactionPort) -> Descriptor | None:
    path = port.statement.search_path if name.schema is None else (name.schema,)
    match kind:
        case ObjectKind.DATABASE:
            return next((d for d in port.schema.objects() if isinstance(d, Database) and d.name == name.name), None)
        case ObjectKind.SCHEMA:
            return next((d for d in port.schema.objects() if isinstance(d, Schema) and d.name == name.name), None)
        case ObjectKind.TYPE:
            types = [d for d in port.schema.objects() if isinstance(d, EnumType) and d.name == name.name]
            return next((d for schema in path for d in types if d.schema == schema), None)
        case ObjectKind.INDEX:
            tables = [t for t in port.names.tables() if any(index.name == name.name for index in t.indexes)]
            return next((t for schema in path for t in tables if t.schema == schema), None)
        case _:
            try:
                return port.names.relation(name.schema, name.name)
            except errors.UndefinedTable:
                return None


def _objects(statement: statements.Statement, port: TransactionPort) -> Iterator[Descriptor]:
    if isinstance(statement, statements.UndropTable):
        kept = (found for found in port.schema.dropped_objects() if isinstance(found, Table))
        dropped = [table for table in kept if table.name == statement.table.name]
        yield from dropped[-1:]
    if isinstance(statement, statements.RevertChange):
        for change in port.schema.past_changes(statement.change_id)[:1]:
            yield from (known for pair in change.versions if (known := pair[1] or pair[0]) is not None)
    kind, names = named_objects(statement)
    found = (_find(kind, name, port) for name in names)
    yield from (each for each in found if each is not None)


def _unsaid(statement: statements.Statement, port: TransactionPort) -> Iterator[tuple[ObjectKind, str]]:
    """The default schema and database while they have no descriptor."""
    kind, names = named_objects(statement)
    always = {ObjectKind.SCHEMA: DEFAULT_SCHEMA, ObjectKind.DATABASE: DEFAULT_DATABASE}.get(kind)
    for name in names:
        if name.name == always and _find(kind, name, port) is None:
            yield kind, name.name


# Rights on what was found.


def _on_objects(statement: statements.Statement, need: Need, port: TransactionPort) -> Found:
    for kind, name in _unsaid(statement, port):
        yield OnUnsaid(kind, port.statement.session.database, name, OWNER), f"must be owner of {kind} {name}"
    for found in _objects(statement, port):
        if need.right == GRANT_OPTION:
            assert isinstance(statement, statements.Grant)
            yield from _grantable(statement, found)
        elif isinstance(statement, DROPS):
            yield drop_right(found, port), f"must be owner of {describe(found)}"
        else:
            yield OnObject(found.id, (need.right,)), _denial(found, need.right)


def _grantable(statement: statements.Grant, found: Descriptor) -> Found:
    kind = kind_of(found)
    every = PRIVILEGES[_GRANTED_AS.get(kind, kind)]
    for privilege in every if statement.privileges == ("ALL",) else statement.privileges:
        yield OnObject(found.id, (privilege,), grantable=True), f"permission denied for {describe(found)}"


def _denial(found: Descriptor, right: str) -> str:
    what = describe(found)
    return f"must be owner of {what}" if right == OWNER else f"permission denied for {what}"


def _in_schema(name: str, right: str, port: TransactionPort, of: str | None = None) -> Found:
    if is_temporary(name) or name == OWN_SCHEMA:
        return
    found = port.rights.schema_right(name, right, of)
    if found is not None:
        yield found, f"permission denied for schema {name}"


def _on_schemas_of_objects(statement: statements.Statement, need: Need, port: TransactionPort) -> Found:
    if isinstance(statement, statements.AlterTable) and not any(map(_takes_name, statement.actions)):
        return
    for found in _objects(statement, port):
        if not isinstance(found, Schema | Database | Role | Shape):
            yield from _in_schema(found.schema, need.right, port)


def _takes_name(action: object) -> bool:
    """Whether the action names a new relation. New sequences are checked where they are planned."""
    if isinstance(action, statements.AddConstraint):
        return isinstance(action.constraint, statements.KeyDefinition) and action.constraint.using_index is None
    return isinstance(action, statements.RenameTable | statements.AlterPrimaryKey)


def _on_schemas_of_owner(statement: statements.Statement, need: Need, port: TransactionPort) -> Found:
    assert isinstance(statement, statements.ChangeOwner)
    for found in _objects(statement, port):
        if isinstance(found, Schema | Database | Role | Shape):
            continue
        if port.rights.access_of(found).owner != statement.role:
            yield from _in_schema(found.schema, need.right, port, statement.role)


def _on_new_schema(statement: statements.Statement, need: Need, port: TransactionPort) -> Found:
    name = new_name(statement)
    schema = (name.schema or port.schema.current_schema) if name is not None else None
    if schema is not None:
        yield from _in_schema(schema, need.right, port)


def _on_target_schema(statement: statements.Statement, need: Need, port: TransactionPort) -> Found:
    assert isinstance(statement, statements.MoveObject)
    yield from _in_schema(statement.schema, need.right, port)


def _on_named_schemas(statement: statements.Statement, need: Need, port: TransactionPort) -> Found:
    created = new_name(statement)
    for name in dict.fromkeys(each.schema for each in relations_named(statement) if each != created):
        if name is not None:
            yield from _in_schema(name, need.right, port)


def _on_parents(statement: statements.Statement, need: Need, port: TransactionPort) -> Found:
    for name in dict.fromkeys(key.parent for key in _foreign_keys(statement)):
        # A table that references itself does not exist yet.
        found = _find(ObjectKind.TABLE, name, port)
        if isinstance(found, Table):
            yield OnObject(found.id, (need.right,)), _denial(found, need.right)


def _foreign_keys(statement: statements.Statement) -> Iterator[statements.ForeignKeyDefinition]:
    rules: Iterable[object] = ()
    if isinstance(statement, statements.CreateTable):
        rules = statement.rules
    elif isinstance(statement, statements.AlterTable):
        rules = (action.constraint for action in statement.actions if isinstance(action, statements.AddConstraint))
    yield from (rule for rule in rules if isinstance(rule, statements.ForeignKeyDefinition))


def _on_database(statement: statements.Statement, need: Need, port: TransactionPort) -> Found:
    name = port.statement.session.database
    yield database_right(name, need.right, port), f"permission denied for database {name}"


def database_right(name: str, privilege: str, port: TransactionPort) -> Right:
    found = _find(ObjectKind.DATABASE, RelationName(None, name), port)
    if found is None:
        return OnUnsaid(ObjectKind.DATABASE, name, name, privilege)
    return OnObject(found.id, (privilege,))


def _on_replaced(statement: statements.Statement, need: Need, port: TransactionPort) -> Found:
    assert isinstance(statement, statements.CreateView)
    found = _find(ObjectKind.VIEW, statement.name, port) if statement.or_replace else None
    if isinstance(found, View):
        yield OnObject(found.id, (need.right,)), _denial(found, need.right)


def _on_named_role(statement: statements.Statement, need: Need, port: TransactionPort) -> Found:
    match statement:
        case (
            statements.ChangeOwner(role=role)
            | statements.CreateSchema(owner=role)
            | statements.CreateDatabase(owner=role)
        ) if role is not None:
            yield MemberOf(role), f'must be able to SET ROLE "{role}"'
        case _:
            pass


def _on_self(statement: statements.Statement, need: Need, port: TransactionPort) -> Found:
    is_asked = not isinstance(statement, statements.NeedlessStatement) or statement.for_superusers
    if need.right in _ATTRIBUTES and is_asked:
        yield RoleAttribute(_ATTRIBUTES[need.right]), _DENIALS[need.right]


def _on_written(statement: statements.Statement, need: Need, port: TransactionPort) -> Found:
    for found in _objects(statement, port):
        yield OnObject(found.id, (need.right,)), _denial(found, need.right)


_FINDERS: dict[Place, Finder] = {
    Place.SELF: _on_self,
    Place.OBJECT: _on_objects,
    Place.OBJECT_SCHEMA: _on_schemas_of_objects,
    Place.OWNERS_SCHEMA: _on_schemas_of_owner,
    Place.NEW_SCHEMA: _on_new_schema,
    Place.TARGET_SCHEMA: _on_target_schema,
    Place.NAMED_SCHEMAS: _on_named_schemas,
    Place.PARENTS: _on_parents,
    Place.REPLACED: _on_replaced,
    Place.DATABASE: _on_database,
    Place.NAMED_ROLE: _on_named_role,
    Place.WRITTEN: _on_written,
}

"""CREATE and DROP SHAPE: the tables of the database at a moment, under a name that `seachange.layout` knows.

**Invariant:** a shape lasts while a role or a session is pinned to it, as far as this node knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from operator import attrgetter

from seachange import errors
from seachange.model import statements
from seachange.model.codecs.descriptor_json import decode_table, encode_table
from seachange.model.ids import DescriptorId
from seachange.model.schema.access import Access
from seachange.model.schema.counterpart import down_of
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Database, Descriptor, Role, Shape
from seachange.model.schema.rights import OWNER, OnObject, Right, RoleAttribute
from seachange.model.schema.temporary import is_temporary
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Result
from seachange.sql.settings.stored_settings import find_database

LAYOUT = "seachange.layout"


def shape_tag(statement: statements.ShapeStatement) -> str:
    return "CREATE SHAPE" if isinstance(statement, statements.CreateShape) else "DROP SHAPE"


def run_shape(statement: statements.ShapeStatement, port: TransactionPort, notices: list[str]) -> Result:
    _check_owner(port)
    if isinstance(statement, statements.CreateShape):
        _create(statement, port, notices)
    else:
        _drop(statement, port, notices)
    return Result(shape_tag(statement))


def find_shape(name: str, port: TransactionPort) -> Shape | None:
    return next((o for o in port.schema.objects() if isinstance(o, Shape) and o.name == name), None)


def _check_owner(port: TransactionPort) -> None:
    name = port.statement.session.database
    database = find_database(name, port.schema.objects())
    # The first database has no descriptor, and belongs to the first role, before one of its attributes is set.
    right: Right = RoleAttribute("superuser") if database is None else OnObject(database.id, (OWNER,))
    port.rights.require(right, f"must be owner of database {name}")


def _create(statement: statements.CreateShape, port: TransactionPort, notices: list[str]) -> None:
    if find_shape(statement.name, port) is not None:
        if not statement.if_not_exists:
            raise errors.DuplicateObject(kind="shape", name=statement.name)
        notices.append(f'shape "{statement.name}" already exists, skipping')
        return
    seq, tables = port.schema.schema_as_of(statement.as_of)
    seen = tuple(encode_table(_outside(table)) for table in tables if not is_temporary(table.schema))
    id_ = DescriptorId(port.definitions.allocate_ids(1)[0])
    database = port.statement.session.database
    port.definitions.publish(None, Shape(id_, 1, statement.name, database, seq, seen))


def _outside(table: Table) -> Table:
    """What a program sees of a table."""
    return replace(
        table,
        secondary=(),
        layouts=table.layouts[-1:],
        checks=(),
        foreign_keys=(),
        next_primary=None,
        later_primaries=(),
        access=Access(),
        parameters=(),
        retired=(),
    )


def _drop(statement: statements.DropShape, port: TransactionPort, notices: list[str]) -> None:
    found = find_shape(statement.name, port)
    if found is None:
        if not statement.if_exists:
            raise errors.UndefinedObject(kind="shape", name=statement.name)
        notices.append(f'shape "{statement.name}" does not exist, skipping')
        return
    users = shape_users(found, port)
    if users:
        dependents = "\n".join(f"{user} is pinned to shape {found.name}" for user in users)
        raise errors.ShapeInUse(name=found.name, dependents=dependents)
    port.definitions.publish(found, None)


def shape_users(shape: Shape, port: TransactionPort) -> list[str]:
    """Roles and sessions that are pinned to it."""
    database = find_database(shape.database, port.schema.objects())
    sessions = [
        f"session {shown.record.number}"
        for shown in port.parts.views.shown_sessions()
        if (shown.record.database, shown.record.layout) == (shape.database, shape.name)
    ]
    return [*(f"role {name}" for name in pinned_roles(port.rights.roles.values(), database, shape.name)), *sessions]


def pinned_roles(roles: Iterable[Role], database: Database | None, shape: str) -> list[str]:
    """Those whose sessions begin with the shape in this database; `PUBLIC` if all do."""
    ids = (0,) if database is None else (0, database.id)
    found = [
        role.name
        for role in roles
        if any(s.database in ids and (s.name, s.value) == (LAYOUT, shape) for s in role.settings)
    ]
    everybody = database is not None and (LAYOUT, shape) in database.settings
    return [*found, *(["PUBLIC"] if everybody else [])]


# What a change is to programs that are pinned to a shape.


def explain_shapes(
    before: Mapping[DescriptorId, Descriptor], after: Mapping[DescriptorId, Descriptor], port: TransactionPort
) -> list[str]:
    """A line for each shape that the change affects."""
    lines = []
    for shape in sorted((o for o in port.schema.objects() if isinstance(o, Shape)), key=attrgetter("name")):
        found: list[str] = []
        for then in map(decode_table, shape.tables):
            was, now = before.get(then.id), after.get(then.id)
            if isinstance(was, Table) and was != now:
                found += _effects(then, was, now if isinstance(now, Table) else None)
        if found:
            lines.append(f"Shape {shape.name}: {'; '.join(found)}")
    return lines


def _effects(then: Table, was: Table, now: Table | None) -> Iterator[str]:
    if now is None:
        yield f"table {then.name} is gone"
        return
    if was.name != now.name:
        yield f"table {then.name} keeps its name"
    known = {column.id for column in then.visible_columns}
    for column in then.visible_columns:
        name, before, after = (
            f"{then.name}.{column.name}",
            was.column_by_id.get(column.id),
            now.column_by_id.get(column.id),
        )
        if before is None:
            continue
        if after is None:
            retired = now.retired_by_id.get(column.id)
            has_value = retired is not None and down_of(retired, now) is not None
            yield f"{name} is computed by DOWN" if has_value else f"{name} cannot be read, for lack of DOWN USING"
        elif before.name != after.name:
            yield f"{name} keeps its name"
        elif before.type != after.type:
            yield f"{name} keeps its type, and values that do not fit cannot be read"
    for column in now.visible_columns:
        if column.id not in was.column_by_id and column.id not in known:
            source = "computed by UP" if column.from_earlier is not None else "its default in new rows"
            yield f"{then.name}.{column.name} is hidden, {source}"

"""Type holes: the parts of a query's text that depend on the catalog, such as casts to enum types, arithmetic on
numerics, and columns that depend on a primary key.

DuckDB compares an enum value with a string as strings; in PostgreSQL the string is a label, and is cast.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp

from seachange import errors
from seachange.model.ids import DescriptorId
from seachange.model.relation import RelationName
from seachange.model.schema.descriptor import Table
from seachange.model.schema.enums import labels_of
from seachange.model.schema.objects import EnumType, View
from seachange.runtime.interruption import each
from seachange.sql.bind.types import BoundType
from seachange.sql.port.port import TransactionPort
from seachange.sql.text.names import refuse_type
from seachange.sql.text.scope import GIVEN, GIVEN_SCHEMA, is_cte_reference
from seachange.sql.translate import arithmetic
from seachange.sql.translate.common_types import bare, find_meetings, join_meeting
from seachange.sql.translate.derived import resolve_columns
from seachange.sql.translate.grouping import Dependent, dependent_text, find_dependent
from seachange.sql.translate.guard import user_type
from seachange.sql.translate.typed import BECOMES
from seachange.storage.arrow import sql_number
from seachange.storage.duck_functions import PREFIX
from seachange.values.digits import count_digits, plain_number
from seachange.values.types import Kind, SqlType

# The prefix of a parameter's name, before its number.
ARGUMENT = "arg"
TYPE_HOLES = re.compile("\x00t([0-9]+)\x00", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class UserCast:
    """To an enum type, by its name or its id."""

    name: RelationName | DescriptorId


@dataclass(frozen=True, slots=True, eq=False)
class Calculated:
    """The prefix of a difference (`place` 0) or of its operands, the function of a product, quotient or average, or the
    type of a cast to numeric: by the types of columns of these tables."""

    node: exp.Expr
    place: int
    tables: tuple[tuple[str, tuple[str | None, str]], ...]
    # Names that the query defines itself.
    aliases: frozenset[str]


TypeHole = UserCast | Calculated | Dependent
FindTable = Callable[[str | None, str], object]


def cut_types(tree: exp.Expr, calculations: bool = True) -> tuple[TypeHole, ...]:
    """`calculations`: whether arithmetic gets holes; not where a descriptor stores the text."""
    holes: list[TypeHole] = []
    for cast in list(tree.find_all(exp.Cast)):
        is_list = cast.to.is_type(exp.DType.ARRAY) and len(cast.to.expressions) == 1
        name = user_type(cast.to.expressions[0] if is_list else cast.to)
        if name is not None:
            kind = exp.Var(this=_mark(holes, UserCast(name)) + ("[]" if is_list else ""))
            cast.set("to", exp.DataType(this=exp.DType.USERDEFINED, kind=kind))
    sources = [
        (node.alias_or_name, (GIVEN_SCHEMA if node.meta_get(GIVEN) else node.db or None, node.name))
        for node in tree.find_all(exp.Table)
        if not isinstance(node.this, exp.Func) and not is_cte_reference(node)
    ]
    _cut_labels(tree, holes)
    for column, dependent in find_dependent(tree) if sources else ():
        column.replace(exp.Anonymous(this=_mark(holes, dependent), expressions=[column.copy()]))
    if calculations:
        _cut_calculations(tree, holes, tuple(sources))
    return tuple(holes)


def _replace(pairs: Sequence[tuple[exp.Expr, exp.Expr]]) -> None:
    """Replaces each node by its partner: those of one list together, which takes as long as replacing one."""
    lists: dict[int, tuple[exp.Expr, dict[int, exp.Expr]]] = {}
    for old, new in pairs:
        if old.index is None or old.parent is None:
            old.replace(new)
        else:
            lists.setdefault(id(old.parent), (old.parent, {}))[1][id(old)] = new
    for parent, news in lists.values():
        parent.set("expressions", [news.get(id(item), item) for item in parent.expressions])


def _cut_labels(tree: exp.Expr, holes: list[TypeHole]) -> None:
    """Constants that have got an enum type from their places, and texts that are values of one."""
    for node in list(tree.find_all(exp.Literal, exp.Parameter, exp.Anonymous)):
        type_ = node.meta_get(BECOMES)
        declared = type_.declared if isinstance(type_, BoundType) else None
        if declared is None:
            continue
        if declared.kind is Kind.CHAR and isinstance(node, exp.Parameter):
            # Clients send values back as they receive them: padded.
            node.replace(exp.func("rtrim", node.copy(), exp.Literal.string(" ")))
        id_ = declared.enum or (declared.element.enum if declared.element is not None else 0)
        if not id_:
            continue
        kind = _mark(holes, UserCast(DescriptorId(id_)))
        value: exp.Expr = node.copy()
        if declared.element is not None:
            kind = f"{kind}[]"
            if isinstance(node, exp.Literal):
                value = exp.Anonymous(this=f"{PREFIX}array", expressions=[value])
        to = exp.DataType(this=exp.DType.USERDEFINED, kind=exp.Var(this=kind))
        node.replace(exp.Cast(this=value, to=to))


def _cut_calculations(
    tree: exp.Expr, holes: list[TypeHole], sources: tuple[tuple[str, tuple[str | None, str]], ...]
) -> None:
    """From the inside out. A hole is filled with the name of a function, or with nothing."""
    nodes = [(n, resolve_columns(n)) for n in tree.find_all(exp.Binary, exp.Func) if arithmetic.is_calculated(n)]
    meetings = find_meetings(tree)
    has_holes = bool(nodes or meetings)
    aliases = (
        frozenset(a.alias for a in tree.find_all(exp.Alias) if a.this.name != a.alias) if has_holes else frozenset()
    )
    for node, combined in reversed(nodes):

        def hole(place: int, *inner: exp.Expr, combined: exp.Expr = combined) -> exp.Expr:
            mark = _mark(holes, Calculated(combined, place, sources, aliases))
            return exp.Anonymous(this=mark, expressions=[bare(each).copy() for each in inner])

        match node:
            case exp.Cast():
                node.set("to", exp.Var(this=_mark(holes, Calculated(combined, 0, sources, aliases))))
            case _ if arithmetic.is_meeting(node):
                mark = _mark(holes, Calculated(combined, 0, sources, aliases))
                parts = each(arithmetic.meeting_parts(node))
                _replace([(part, exp.Anonymous(this=mark, expressions=[bare(part).copy()])) for part in parts])
            case _ if arithmetic.is_rounding(node):
                node.replace(hole(0, node))
            case exp.Sub():
                for place, key in ((1, "this"), (2, "expression")):
                    node.set(key, hole(place, node.args[key]))
                node.replace(hole(0, node))
            case exp.AggFunc():
                whole: exp.Expr = node
                while isinstance(whole.parent, exp.Window | exp.Filter) and whole.arg_key == "this":
                    whole = whole.parent
                whole.replace(hole(0, whole, *(_instead(whole, node, other) for other in arithmetic.parts_of(node))))
            case _:
                node.replace(hole(0, node.this, node.expression))
    for meeting in meetings:
        join_meeting(meeting, _mark(holes, Calculated(meeting.combined, 0, sources, aliases)))


def _instead(whole: exp.Expr, aggregate: exp.Expr, other: exp.Expr) -> exp.Expr:
    """Another aggregate over the same rows."""
    if whole is aggregate:
        return other
    made = whole.copy()
    place = next(node for node in made.find_all(type(aggregate)) if node == aggregate)
    place.replace(other)
    return made


def _mark(holes: list[TypeHole], hole: TypeHole) -> str:
    holes.append(hole)
    return f"\x00t{len(holes) - 1}\x00"


def fill_types(parts: Sequence[str], types: Sequence[str]) -> str:
    return TYPE_HOLES.sub(lambda hole: types[int(hole[1])], "".join(parts))


def bind_types(
    holes: Sequence[TypeHole], port: TransactionPort, find: FindTable | None = None, values: Sequence[Any] = ()
) -> list[str] | None:
    """The texts for the holes; None if none matters. `values` are those of the parameters."""
    if not holes:
        return None
    known = find or port.names.relation
    return [_text(hole, port, known, values) for hole in holes]


def _text(hole: TypeHole, port: TransactionPort, find: FindTable, values: Sequence[Any]) -> str:
    match hole:
        case UserCast():
            return _cast_type(hole, port)
        case Dependent():
            return dependent_text(hole, lambda schema, name: _find(schema, name, find))
        case Calculated():
            return _calculated(hole, lambda column: _known_type(hole, column, find), values)


def _calculated(hole: Calculated, column_type: arithmetic.ColumnType, values: Sequence[Any]) -> str:
    if isinstance(hole.node, exp.Cast) and isinstance(hole.node.this, exp.Parameter):
        given = plain_number(_value(hole.node.this, values))
        return arithmetic.decimal_type(*count_digits(given)) if given is not None else SqlType(Kind.NUMERIC).duckdb
    node = _with_values(hole.node, values) if values else hole.node
    match node:
        case exp.Sub():
            return arithmetic.difference_prefixes(node, column_type)[hole.place]
        case exp.Cast():
            return arithmetic.numeric_type(node, column_type)
        case _:
            return arithmetic.calculation(node, column_type)


def _with_values(node: exp.Expr, values: Sequence[Any]) -> exp.Expr:
    """The node with numbers in place of the parameters: they are typed like constants."""
    if node.find(exp.Parameter) is None:
        return node
    made = node.copy()
    for parameter in list(made.find_all(exp.Parameter)):
        value = _value(parameter, values)
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            parameter.replace(
                exp.Literal.number(f"{value:e}" if isinstance(value, float) else f"{Decimal(value).copy_abs():f}")
            )
    return made


def _value(parameter: exp.Expr, values: Sequence[Any]) -> Any:
    number = parameter.name.removeprefix(ARGUMENT)
    return values[int(number) - 1] if number.isdigit() and int(number) <= len(values) else None


def _known_type(hole: Calculated, column: exp.Column, find: FindTable) -> SqlType | None:
    is_alias = not column.table and column.name in hole.aliases
    return None if is_alias else _column_type(hole.tables, column, find)


def _column_type(
    named: Sequence[tuple[str, tuple[str | None, str]]], column: exp.Column, find: FindTable
) -> SqlType | None:
    """None unless it is certain which column is meant."""
    own = [table for alias, table in named if alias == column.table]
    among = own or ([table for _, table in named] if not column.table else [])
    found = {type_ for each in among if (type_ := _type_in(_find_relation(*each, find), column.name)) is not None}
    return found.pop() if len(found) == 1 else None


def _type_in(relation: object, name: str) -> SqlType | None:
    """The type of a column of a table, a view, or rows that are passed in; the precision of a view's numeric is known
    only if declared."""
    if isinstance(relation, pa.Schema):
        place = relation.get_field_index(name)
        return sql_number(relation.field(place).type) if place >= 0 else None
    if isinstance(relation, Table):
        column = relation.column_by_name.get(name)
        return None if column is None else column.type
    if not isinstance(relation, View) or len(relation.types) != len(relation.columns):
        return None
    type_ = dict(zip(relation.columns, relation.types, strict=True)).get(name)
    return None if type_ is None or (type_.kind is Kind.NUMERIC and not type_.precision) else type_


def _cast_type(hole: UserCast, port: TransactionPort) -> str:
    if isinstance(hole.name, RelationName):
        return labels_of(find_enum(hole.name, port)).duckdb
    found = port.schema.object_by_id(hole.name)
    if not isinstance(found, EnumType):
        raise errors.Bug(detail=f"enum type {hole.name} does not exist")
    return labels_of(found).duckdb


def duck_type(type_: SqlType, port: TransactionPort) -> str:
    """DuckDB's type of a column's values in expressions."""
    if not type_.enum:
        return type_.duckdb
    labels = _cast_type(UserCast(DescriptorId(type_.enum)), port)
    return labels if type_.element is None else f"{labels}[]"


def find_enum(name: RelationName, port: TransactionPort) -> EnumType:
    found = {(o.schema, o.name): o for o in port.schema.objects() if isinstance(o, EnumType)}
    for schema in port.statement.search_path if name.schema is None else (name.schema,):
        port.schema.note_name(schema, name.name)
        if (schema, name.name) in found:
            return found[schema, name.name]
    refuse_type(name.name)
    raise errors.UndefinedObject(kind="type", name=name)


def _find(schema: str | None, name: str, find: FindTable) -> Table | None:
    found = _find_relation(schema, name, find)
    return found if isinstance(found, Table) else None


def _find_relation(schema: str | None, name: str, find: FindTable) -> object:
    try:
        return find(schema, name)
    except (errors.UndefinedTable, KeyError):
        # A system view, rows that the statement passes in, or a name that a view does not know.
        return None

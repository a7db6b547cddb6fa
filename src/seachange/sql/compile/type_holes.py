"""Type holes: the parts of a query's text that depend on the catalog, such as casts to enum types, comparisons with
labels, arithmetic on numerics, and columns that depend on a primary key.

DuckDB compares an enum value with a string as strings; in PostgreSQL the string is a label. So a constant that is
compared with a column is followed by a hole, which becomes a cast if the column has an enum type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
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
from seachange.sql.port.port import TransactionPort
from seachange.sql.text.scope import GIVEN, is_cte_reference
from seachange.sql.translate import arithmetic
from seachange.sql.translate.common_types import bare, find_meetings, join_meeting
from seachange.sql.translate.derived import resolve_columns
from seachange.sql.translate.grouping import Dependent, dependent_text, find_dependent
from seachange.sql.translate.guard import user_type
from seachange.sql.translate.mapped.lists import deciding_column
from seachange.sql.translate.mapped.trees import ITEM_CALL
from seachange.storage.arrow import sql_number
from seachange.storage.duck_functions import PREFIX
from seachange.values.digits import count_digits, plain_number
from seachange.values.types import Kind, SqlType

# The prefix of a parameter's name, before its number.
ARGUMENT = "arg"
# The schema of rows that a statement passes in. No statement can contain a NUL.
GIVEN_SCHEMA = "\x00given"
TYPE_HOLES = re.compile("\x00t([0-9]+)\x00", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class UserCast:
    name: RelationName


@dataclass(frozen=True, slots=True)
class Compared:
    """A constant is compared with a column of one of these tables."""

    column: str
    tables: tuple[tuple[str | None, str], ...]
    # A literal with trailing spaces, which are insignificant if the column is a char.
    spaced: bool = False
    # A literal that may be an array or a JSON document.
    braced: bool = False

    @property
    def matters(self) -> bool:
        """Whether it matters even if there are no enum types."""
        return self.spaced or self.braced


@dataclass(frozen=True, slots=True)
class Document:
    """The prefix of a column that is compared with a constant which may be a JSON document."""

    column: str
    tables: tuple[tuple[str | None, str], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Calculated:
    """The prefix of a difference (`place` 0) or of its operands, the function of a product, quotient or average, or the
    type of a cast to numeric: by the types of columns of these tables."""

    node: exp.Expr
    place: int
    tables: tuple[tuple[str, tuple[str | None, str]], ...]
    # Names that the query defines itself.
    aliases: frozenset[str]


@dataclass(frozen=True, slots=True)
class ListItem:
    """The prefix of an operand of a list concatenation: empty if the operand is a list itself, which its column
    decides, or if `beside` is not a list."""

    column: exp.Column | None
    tables: tuple[tuple[str, tuple[str | None, str]], ...]
    beside: exp.Column | None = None


TypeHole = UserCast | Compared | Document | Calculated | Dependent | ListItem
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
        (node.alias_or_name, (GIVEN_SCHEMA if node.meta.get(GIVEN) else node.db or None, node.name))
        for node in tree.find_all(exp.Table)
        if not isinstance(node.this, exp.Func) and not is_cte_reference(node)
    ]
    _cut_items(tree, holes, tuple(sources), calculations)
    for column, dependent in find_dependent(tree) if sources else ():
        column.replace(exp.Anonymous(this=_mark(holes, dependent), expressions=[column.copy()]))
    if sources:
        replaced: list[tuple[exp.Expr, exp.Expr]] = []
        for column, constant in each(list(_comparisons(tree))):
            own = [table for alias, table in sources if alias == column.table]
            tables = tuple(dict.fromkeys(own or (table for _, table in sources)))
            mark = _mark(holes, Compared(column.name, tables, _is_spaced(constant), _is_braced(constant)))
            replaced.append((constant, exp.Var(this=constant.sql("duckdb") + mark)))
            if _is_braced(constant):
                wrapped = exp.Anonymous(this=_mark(holes, Document(column.name, tables)), expressions=[column.copy()])
                column.replace(wrapped)
        _replace(replaced)
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


def _cut_items(
    tree: exp.Expr, holes: list[TypeHole], sources: tuple[tuple[str, tuple[str | None, str]], ...], columns: bool
) -> None:
    """Operands of list concatenations; of two columns either may be the list."""
    for call in [call for call in tree.find_all(exp.Anonymous) if call.name == ITEM_CALL]:
        item = call.expressions[0]
        mark = _mark(holes, ListItem(deciding_column(item), sources))
        call.replace(exp.Anonymous(this=mark, expressions=[item.copy()]))
    for pipe in list(tree.find_all(exp.DPipe)) if columns and sources else ():
        left, right = pipe.this, pipe.expression
        if isinstance(left, exp.Column) and isinstance(right, exp.Column):
            for key, item, beside in (("this", left, right), ("expression", right, left)):
                mark = _mark(holes, ListItem(item, sources, beside))
                pipe.set(key, exp.Anonymous(this=mark, expressions=[item.copy()]))


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


def _comparisons(tree: exp.Expr) -> Iterator[tuple[exp.Column, exp.Expr]]:
    """Columns with the constants that they are compared with."""
    for node in tree.find_all(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.In, exp.Between):
        match node:
            case exp.In():
                others = node.expressions
            case exp.Between():
                others = [node.args["low"], node.args["high"]]
            case _:
                others = [node.expression]
                if isinstance(node.expression, exp.Column) and _is_constant(node.this):
                    yield node.expression, node.this
        if isinstance(node.this, exp.Column) and isinstance(node.this.this, exp.Identifier):
            yield from ((node.this, other) for other in others if _is_constant(other))


def _is_spaced(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and node.is_string and node.name.endswith(" ")


def _is_braced(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and node.is_string and node.name.lstrip()[:1] in ("{", "[")


def _is_constant(node: exp.Expr) -> bool:
    return isinstance(node, exp.Parameter) or (isinstance(node, exp.Literal) and node.is_string)


def fill_types(parts: Sequence[str], types: Sequence[str]) -> str:
    return TYPE_HOLES.sub(lambda hole: types[int(hole[1])], "".join(parts))


def bind_types(
    holes: Sequence[TypeHole], port: TransactionPort, find: FindTable | None = None, values: Sequence[Any] = ()
) -> list[str] | None:
    """The texts for the holes; None if none matters. `values` are those of the parameters."""
    if not holes or not (
        port.schema.has_enums or any(not isinstance(hole, Compared) or hole.matters for hole in holes)
    ):
        return None
    known = find or port.names.relation
    return [_text(hole, port, known, values) for hole in holes]


def _text(hole: TypeHole, port: TransactionPort, find: FindTable, values: Sequence[Any]) -> str:
    match hole:
        case UserCast():
            return _cast_type(hole, port)
        case Compared():
            return _compared(hole, port, find)
        case Document():
            return f"{PREFIX}json_value" if _is_document(hole.column, hole.tables, find) else ""
        case ListItem():
            return _item(hole, find)
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


def _item(hole: ListItem, find: FindTable) -> str:
    type_ = _column_type(hole.tables, hole.column, find) if hole.column is not None else None
    beside = _column_type(hole.tables, hole.beside, find) if hole.beside is not None else None
    is_put = hole.beside is None or (beside is not None and beside.element is not None)
    return "list_value" if is_put and type_ is not None and type_.element is None else ""


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
    return labels_of(find_enum(hole.name, port)).duckdb


def find_enum(name: RelationName, port: TransactionPort) -> EnumType:
    found = {(o.schema, o.name): o for o in port.schema.objects() if isinstance(o, EnumType)}
    for schema in port.statement.search_path if name.schema is None else (name.schema,):
        port.schema.note_name(schema, name.name)
        if (schema, name.name) in found:
            return found[schema, name.name]
    raise errors.UndefinedObject(kind="type", name=name)


def _compared(hole: Compared, port: TransactionPort, find: FindTable) -> str:
    """Empty unless the column certainly has one enum type: DuckDB then compares texts."""
    enums: set[int] = set()
    types: set[SqlType] = set()
    for schema, name in hole.tables:
        table = _find(schema, name, find)
        column = table.column_by_name.get(hole.column) if table is not None else None
        if column is not None:
            enums.add(column.type.enum)
            types.add(column.type)
    if hole.spaced and {type_.kind for type_ in types} == {Kind.CHAR}:
        return ".rtrim(' ')"
    if hole.braced and {type_.kind for type_ in types} == {Kind.JSONB}:
        return f".{PREFIX}json_constant()"
    type_ = port.schema.object_by_id(DescriptorId(enums.pop())) if len(enums) == 1 else None
    listed = next(iter(types)) if len(types) == 1 else None
    if listed is None or listed.element is None:
        return f"::{labels_of(type_).duckdb}" if isinstance(type_, EnumType) else ""
    name = f"{labels_of(type_).duckdb}[]" if isinstance(type_, EnumType) else listed.duckdb
    return f".{PREFIX}array()::{name}" if hole.braced else f"::{name}" if listed.enum else ""


def _is_document(column: str, named: Sequence[tuple[str | None, str]], find: FindTable) -> bool:
    tables = [table for each in named if (table := _find(*each, find)) is not None]
    found = [made for table in tables if (made := table.column_by_name.get(column)) is not None]
    return bool(found) and all(made.type.kind is Kind.JSONB for made in found)


def _find(schema: str | None, name: str, find: FindTable) -> Table | None:
    found = _find_relation(schema, name, find)
    return found if isinstance(found, Table) else None


def _find_relation(schema: str | None, name: str, find: FindTable) -> object:
    try:
        return find(schema, name)
    except (errors.UndefinedTable, KeyError):
        # A system view, rows that the statement passes in, or a name that a view does not know.
        return None

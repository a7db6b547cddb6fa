"""The types of a statement's parameters, as far as the text says them: by a cast, the column that a parameter is
compared with or stored in, or the place where it stands. PostgreSQL infers more; what is not found here is text.

**Invariant:** a type is only what the one column that is meant has: where a name could mean several, none is given.
**Invariant:** it has no modifiers: a longer text, or a number of more digits, is none of the column's, nor made one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from seachange import errors
from seachange.model.descriptor import Table
from seachange.model.types import BIGINT, TEXT, Kind, SqlType, array_of
from seachange.sql.ddl.names import read_type
from seachange.sql.port import TransactionPort
from seachange.sql.system import is_told
from seachange.sql.target import folded
from seachange.sql.tokens import Reader, split_script

_ALIKE = (exp.Predicate, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Coalesce, exp.PropertyEQ, exp.Array)
_LITERALS = {True: TEXT, False: SqlType(Kind.INTEGER)}
_BOOLEAN = SqlType(Kind.BOOLEAN)


def parameter_types(tree: exp.Expr, port: TransactionPort) -> tuple[SqlType | None, ...]:
    """One for each, from $1 on; None where the text does not tell."""
    tables = list(_tables(tree, port))
    found: dict[int, SqlType | None] = {}
    for parameter in tree.find_all(exp.Parameter):
        if not isinstance(parameter.this, exp.Literal) or parameter.this.is_string:
            continue
        number = int(parameter.this.name)
        if found.get(number) is None:
            type_ = _type(parameter, tables)
            found[number] = type_.unmodified if type_ is not None else None
    return tuple(found.get(number) for number in range(1, max(found, default=0) + 1))


def _tables(tree: exp.Expr, port: TransactionPort) -> Iterator[tuple[str, Table]]:
    for node in tree.find_all(exp.Table):
        if not isinstance(node.this, exp.Identifier):
            continue
        schema, alias = node.args.get("db"), node.args.get("alias")
        place = folded(schema) if schema is not None else None
        if is_told(place, folded(node.this)):
            continue
        try:
            relation = port.relation(place, folded(node.this))
        except errors.Error:
            # A name that WITH gives, or one that the statement fails for when it is run.
            continue
        if isinstance(relation, Table):
            yield (folded(alias.this) if alias is not None and alias.this else folded(node.this)), relation


def _type(parameter: exp.Expr, tables: Sequence[tuple[str, Table]]) -> SqlType | None:
    node, parent = parameter, parameter.parent
    while isinstance(parent, exp.Paren | exp.Neg):
        node, parent = parent, parent.parent
    match parent:
        case exp.Cast():
            return _cast_type(parent)
        case exp.Limit() | exp.Offset() | exp.Fetch():
            return BIGINT
        case exp.Any() | exp.All() | exp.Anonymous() if _is_quantifier(parent):
            other = _first_type((n for n in _operands(parent.parent) if n is not parent), tables)
            return array_of(other) if other is not None and other.element is None else None
        case exp.Tuple() if isinstance(parent.parent, exp.Values):
            return _inserted(parent, node, tables)
        case exp.Select() if isinstance(parent.parent, exp.Insert) and node in parent.expressions:
            return _inserted(parent, node, tables, parent.parent)
        case exp.And() | exp.Or() | exp.Not() | exp.Where():
            return _BOOLEAN
        case _ if isinstance(parent, _ALIKE):
            return _first_type((n for n in _operands(parent) if n is not node), tables)
        case _:
            return None


def _is_quantifier(node: exp.Expr) -> bool:
    """The parser takes some of them for calls."""
    return not isinstance(node, exp.Anonymous) or node.name.lower() in ("all", "some")


def _operands(node: exp.Expr | None) -> Iterator[exp.Expr]:
    return node.iter_expressions() if node is not None else iter(())


def _first_type(nodes: Iterator[exp.Expr], tables: Sequence[tuple[str, Table]]) -> SqlType | None:
    for node in nodes:
        node = node.unnest()
        found = None
        if isinstance(node, exp.Column):
            found = _column_type(node, tables)
        elif isinstance(node, exp.Cast):
            found = _cast_type(node)
        elif isinstance(node, exp.Literal):
            found = _LITERALS[node.is_string] if node.is_string or node.is_int else SqlType(Kind.NUMERIC)
        elif isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod):
            found = _first_type(_operands(node), tables)
        if found is not None:
            return found
    return None


def _column_type(node: exp.Column, tables: Sequence[tuple[str, Table]]) -> SqlType | None:
    name, of = folded(node.this), folded(node.args["table"]) if node.args.get("table") else None
    among = {table.id: table for alias, table in tables if of in (None, alias, "excluded") or of == table.name}
    having = [column for table in among.values() if (column := table.column_by_name.get(name)) is not None]
    return having[0].type if len(having) == 1 else None


def _inserted(
    row: exp.Expr, node: exp.Expr, tables: Sequence[tuple[str, Table]], insert: exp.Expr | None = None
) -> SqlType | None:
    insert = insert or (row.parent.parent if row.parent is not None else None)
    if not isinstance(insert, exp.Insert) or not tables:
        return None
    target = insert.this
    named = target.this if isinstance(target, exp.Schema) else target
    table = next((table for _, table in tables if table.name == folded(named.this)), None)
    position = next(i for i, item in enumerate(row.expressions) if item is node)
    if table is None:
        return None
    if isinstance(target, exp.Schema):
        columns = [table.column_by_name.get(folded(item)) for item in target.expressions]
    else:
        columns = list(table.visible_columns)
    column = columns[position] if position < len(columns) else None
    return column.type if column is not None else None


def _cast_type(node: exp.Cast) -> SqlType | None:
    if node.to.is_type(exp.DType.ARRAY) and node.to.expressions[0].is_type(exp.DType.UINT):
        return array_of(SqlType(Kind.OID))
    try:
        (raw,) = split_script(node.to.sql("postgres"))
        return read_type(Reader(raw.words, raw.text))
    except (errors.Error, ValueError):
        return None

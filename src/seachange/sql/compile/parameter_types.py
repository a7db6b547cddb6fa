"""Parameter types that follow from a statement's text: by a cast, by the column that a parameter is compared with or
stored in, or by its position. PostgreSQL infers more; a type that is not found here is text.

**Invariant:** a type is that of the only column that a name can mean; an ambiguous name gives none.
**Invariant:** it has no modifiers: a text longer than the column, or a number with more digits, is neither a value of
the column nor made one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlglot import exp

from seachange import errors
from seachange.model.schema.descriptor import Column, Table
from seachange.runtime.interruption import each
from seachange.sql.compile.system_relations import is_virtual_relation
from seachange.sql.compile.target import folded
from seachange.sql.port.port import TransactionPort
from seachange.sql.text.names import read_type
from seachange.sql.text.tokens import Reader, split_script
from seachange.values.types import BIGINT, TEXT, Kind, SqlType, array_of

_ALIKE = (exp.Predicate, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Coalesce, exp.PropertyEQ, exp.Array)
_LITERALS = {True: TEXT, False: SqlType(Kind.INTEGER)}
_BOOLEAN = SqlType(Kind.BOOLEAN)
# A column by its name, and the number of the parameter.
Compared = tuple[tuple[str, int], ...]
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between)


def parameter_types(tree: exp.Expr, port: TransactionPort) -> tuple[SqlType | None, ...]:
    """One for each parameter, from $1; None where the text does not determine it."""
    inference = _Inference(list(_tables(tree, port)))
    found: dict[int, SqlType | None] = {}
    for parameter in each(tree.find_all(exp.Parameter)):
        if not isinstance(parameter.this, exp.Literal) or parameter.this.is_string:
            continue
        number = int(parameter.this.name)
        if found.get(number) is None:
            type_ = inference.type_of(parameter)
            found[number] = type_.unmodified if type_ is not None else None
    return tuple(found.get(number) for number in range(1, max(found, default=0) + 1))


def _tables(tree: exp.Expr, port: TransactionPort) -> Iterator[tuple[str, Table]]:
    for node in tree.find_all(exp.Table):
        if not isinstance(node.this, exp.Identifier):
            continue
        schema, alias = node.args.get("db"), node.args.get("alias")
        place = folded(schema) if schema is not None else None
        if is_virtual_relation(place, folded(node.this)):
            continue
        try:
            relation = port.names.relation(place, folded(node.this))
        except errors.Error:
            # A name defined by WITH, or one for which the statement fails at run time.
            continue
        if isinstance(relation, Table):
            yield (folded(alias.this) if alias is not None and alias.this else folded(node.this)), relation


class _Inference:
    """Inference for one statement. The type that a node's operands imply is computed once, however many of them are
    parameters."""

    def __init__(self, tables: Sequence[tuple[str, Table]]) -> None:
        self._tables = tables
        self._by_operands: dict[int, SqlType | None] = {}
        self._by_insert: dict[int, Sequence[Column | None]] = {}

    def type_of(self, parameter: exp.Expr) -> SqlType | None:
        node, parent = parameter, parameter.parent
        while isinstance(parent, exp.Paren | exp.Neg):
            node, parent = parent, parent.parent
        match parent:
            case exp.Cast():
                return _cast_type(parent)
            case exp.Limit() | exp.Offset() | exp.Fetch():
                return BIGINT
            case exp.Any() | exp.All() | exp.Anonymous() if _is_quantifier(parent):
                other = self._type_by_operands(parent.parent)
                return array_of(other) if other is not None and other.element is None else None
            case exp.Tuple() if isinstance(parent.parent, exp.Values):
                return self._inserted(node, parent.parent.parent)
            case exp.Select() if isinstance(parent.parent, exp.Insert) and node.arg_key == "expressions":
                return self._inserted(node, parent.parent)
            case exp.And() | exp.Or() | exp.Not() | exp.Where():
                return _BOOLEAN
            case _ if isinstance(parent, _ALIKE):
                return self._type_by_operands(parent)
            case _:
                return None

    def _type_by_operands(self, node: exp.Expr | None) -> SqlType | None:
        """The type of the first operand that has one; a parameter has none."""
        if node is None:
            return None
        if id(node) not in self._by_operands:
            found = (self._operand_type(operand.unnest()) for operand in each(node.iter_expressions()))
            self._by_operands[id(node)] = next((type_ for type_ in found if type_ is not None), None)
        return self._by_operands[id(node)]

    def _operand_type(self, node: exp.Expr) -> SqlType | None:
        match node:
            case exp.Column():
                return self._column_type(node)
            case exp.Cast():
                return _cast_type(node)
            case exp.Literal():
                return _LITERALS[node.is_string] if node.is_string or node.is_int else SqlType(Kind.NUMERIC)
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
                return self._type_by_operands(node)
            case _:
                return None

    def _column_type(self, node: exp.Column) -> SqlType | None:
        name, of = folded(node.this), folded(node.args["table"]) if node.args.get("table") else None
        among = {t.id: t for alias, t in self._tables if of in (None, alias, "excluded") or of == t.name}
        having = [column for table in among.values() if (column := table.column_by_name.get(name)) is not None]
        return having[0].type if len(having) == 1 else None

    def _inserted(self, node: exp.Expr, insert: exp.Expr | None) -> SqlType | None:
        """The type of the column that a value in a row, or in a select list, is stored in."""
        if not isinstance(insert, exp.Insert) or node.index is None:
            return None
        if id(insert) not in self._by_insert:
            self._by_insert[id(insert)] = self._target_columns(insert)
        columns = self._by_insert[id(insert)]
        column = columns[node.index] if node.index < len(columns) else None
        return column.type if column is not None else None

    def _target_columns(self, insert: exp.Insert) -> Sequence[Column | None]:
        target = insert.this
        named = target.this if isinstance(target, exp.Schema) else target
        table = next((table for _, table in self._tables if table.name == folded(named.this)), None)
        if table is None:
            return ()
        if isinstance(target, exp.Schema):
            return [table.column_by_name.get(folded(item)) for item in target.expressions]
        return table.visible_columns


def _is_quantifier(node: exp.Expr) -> bool:
    """The parser represents some of them as calls."""
    return not isinstance(node, exp.Anonymous) or node.name.lower() in ("all", "some")


def _cast_type(node: exp.Cast) -> SqlType | None:
    if node.to.is_type(exp.DType.ARRAY) and node.to.expressions[0].is_type(exp.DType.UINT):
        return array_of(SqlType(Kind.OID))
    try:
        (raw,) = split_script(node.to.sql("postgres"))
        return read_type(Reader(raw.words, raw.text))
    except (errors.Error, ValueError):
        return None


def note_compared(tree: exp.Expr) -> Compared:
    """Trailing spaces of parameters that are compared with char columns are insignificant.

    Rows store char values without padding and clients receive them padded, so they send padded values back.
    """
    found: list[tuple[str, int]] = []
    for node in tree.find_all(*_COMPARISONS):
        sides = list(node.iter_expressions())
        columns = [side.name for side in sides if isinstance(side, exp.Column)]
        numbers = [int(side.this.name) for side in sides if isinstance(side, exp.Parameter)]
        found += [(name, number) for name in columns for number in numbers]
    return tuple(dict.fromkeys(found))


def without_padding(compared: Compared, tables: Iterable[Table], values: Mapping[int, Any]) -> dict[int, Any]:
    """Those of the parameters that must be passed without their padding."""
    padded = {n for _, n in compared if isinstance(values.get(n), str) and values[n].endswith(" ")}
    if not padded:
        return {}
    names = {column.name for table in tables for column in table.columns if column.type.kind is Kind.CHAR}
    return {number: values[number].rstrip(" ") for name, number in compared if number in padded and name in names}

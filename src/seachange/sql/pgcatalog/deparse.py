"""Deparsing: DuckDB text over column ids, as stored in descriptors, printed as PostgreSQL prints it.

PostgreSQL prints expressions as it has analysed them: every operation in parentheses, every constant with its type.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import sqlglot
from sqlglot import exp

from seachange.model.schema.constraint import Action, Check, ForeignKey
from seachange.model.schema.defaults import constant_value, is_constant
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.schema.enums import labels_of
from seachange.model.schema.expression import Expression
from seachange.model.schema.objects import EnumType
from seachange.model.schema.objects import Sequence as SequenceObject
from seachange.model.states import State
from seachange.sql.pgcatalog.documents import name_operators
from seachange.sql.pgcatalog.facts import Facts, Relation, quote_name, type_name
from seachange.sql.translate.mapped.trees import FUNCTION_NAMES
from seachange.sql.translate.result_types import drop_declared
from seachange.sql.translate.size_limits import drop_guards
from seachange.sql.translate.time_functions import spell_now
from seachange.storage.duck_functions import PREFIX
from seachange.values.digits import count_digits, plain_number
from seachange.values.output_format import show_held, show_text
from seachange.values.types import Kind

_TEXT_CAST: Final = f"{PREFIX}text"
_COLUMN: Final = re.compile(r"c([0-9]+)")
_CONSTANT: Final = re.compile(r"'((?:[^']|'')*)'::(.*)", re.DOTALL)
_DRAW: Final = re.compile(r"nextval\(([0-9]+)\)", re.IGNORECASE)
_INTEGERS: Final = frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT})
_STRINGS: Final = frozenset({Kind.TEXT, Kind.VARCHAR})
# Kinds whose constants are printed as numbers, without quotes, and with a type unless it is the default one.
_PLAIN: Final = frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.NUMERIC, Kind.REAL, Kind.DOUBLE})
_SHOWN_SHORTER: Final = frozenset({Kind.NUMERIC, Kind.REAL, Kind.DOUBLE})
_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)


def full_name(facts: Facts, relation: Relation) -> str:
    """Qualified by its schema unless the search path finds it."""
    name = quote_name(relation.name)
    return name if facts.is_visible(relation) else f"{quote_name(relation.schema)}.{name}"


def default_text(facts: Facts, column: Column) -> str | None:
    if column.default is None:
        return None
    if is_constant(column.default):
        return _enum_text(facts, column) or _constant_text(_as_shown(column))
    text = _DRAW.sub(lambda match: _draw_text(facts, int(match.group(1))), column.default)
    return _plain_expression(text)


def _enum_text(facts: Facts, column: Column) -> str | None:
    """A row stores a permanent text of an enum value; its label is printed."""
    enum = facts.by_id.get(column.type.enum) if column.type.enum else None
    if not isinstance(enum, EnumType):
        return None
    labels = labels_of(enum)
    shown = show_text(column.type, labels.show(constant_value(column.type, column.default)))
    type_ = type_name(facts, column.type.oid)
    return "'" + str(shown).replace("'", "''") + f"'::{type_}"


def _as_shown(column: Column) -> str:
    """A stored number has all digits of its type; it is printed with those that a query shows."""
    assert column.default is not None
    if column.type.kind not in _SHOWN_SHORTER:
        return column.default
    return f"'{show_held(column.type, constant_value(column.type, column.default))}'::{column.type}"


def _draw_text(facts: Facts, id_: int) -> str:
    sequence = facts.by_id.get(id_)
    name = full_name(facts, sequence) if isinstance(sequence, SequenceObject) else str(id_)
    return "nextval('" + name.replace("'", "''") + "'::regclass)"


def _constant_text(default: str) -> str:
    """
    >>> _constant_text("'0.00'::numeric(5,2)"), _constant_text("'true'::boolean"), _constant_text("'x'::text")
    ('0.00', 'true', "'x'::text")
    >>> _constant_text("'-1'::integer"), _constant_text("'5'::bigint"), _constant_text("'a'::character varying(10)")
    ("'-1'::integer", "'5'::bigint", "'a'::character varying")
    """
    match = _CONSTANT.fullmatch(default)
    assert match is not None, default
    value, type_ = match.groups()
    kind = type_.split("(")[0].strip()
    is_number = kind in ("integer", "smallint", "numeric", "double precision", "real") and value[:1].isdigit()
    if is_number or kind == "boolean":
        return value
    return f"'{value}'::{kind}"


@lru_cache(maxsize=4096)
def _plain_expression(text: str) -> str:
    if text.lower().startswith("nextval("):
        return text
    return print_expression(sqlglot.parse_one(text, dialect="duckdb").unnest())


def expression_text(table: Table, expression: Expression | str, pretty: bool = False) -> str:
    """An expression over columns of the table, in parentheses where PostgreSQL prints them: everywhere, or with
    `pretty` only where needed."""
    text = expression if isinstance(expression, str) else expression.text
    tree = sqlglot.parse_one(text, dialect="duckdb").unnest()
    holder = exp.Paren(this=tree)
    for node in list(holder.find_all(exp.Column)):
        match = _COLUMN.fullmatch(node.name)
        column = table.column_by_id.get(int(match.group(1))) if match is not None else None  # type: ignore[call-overload]
        if column is not None:
            named = exp.Column(this=exp.to_identifier(column.name, quoted=quote_name(column.name) != column.name))
            named.meta["column"] = column
            node.replace(named)
    return print_expression(holder.this, pretty)


def print_expression(tree: exp.Expr, pretty: bool = False) -> str:
    holder = exp.Paren(this=tree.copy())
    _spell_out(holder)
    spell_now(holder)
    for comparison in list(holder.find_all(*_COMPARISONS)):
        _type_constants(comparison)
    if pretty:
        for paren in list(holder.this.find_all(exp.Paren)):
            if isinstance(paren.this, exp.Literal | exp.Column):
                paren.replace(paren.this.copy())
    else:
        # The inner ones first: an outer one is copied into its parentheses.
        for operation in reversed(list(holder.find_all(exp.Binary, exp.Not))):
            _parenthesise(operation)
    for negative in [n for n in holder.find_all(exp.Neg) if isinstance(n.this, exp.Literal)]:
        if negative.name.isdigit() and int(negative.name) < 2**31:
            negative.replace(exp.cast(exp.Literal.string(f"-{negative.name}"), exp.DType.INT))
    for literal in list(holder.find_all(exp.Literal)):
        if literal.is_string and not isinstance(literal.parent, exp.Cast | exp.Interval):
            literal.replace(exp.cast(literal.copy(), exp.DType.TEXT))
    return _spell(holder.this.sql("postgres", normalize_functions="lower"))


def _spell_out(holder: exp.Expr) -> None:
    """Rewrites BETWEEN and IN as comparisons, and our functions as PostgreSQL's."""
    drop_guards(holder)
    drop_declared(holder)
    name_operators(holder)
    for quotient in holder.find_all(exp.Div):
        # PostgreSQL's own division.
        quotient.set("typed", True)
    for cast in [c for c in holder.find_all(exp.Cast) if c.to.is_type(exp.DType.DECIMAL)]:
        _plain_numeric(cast)
    # An integer that DuckDB has to be told is one.
    for cast in [c for c in holder.find_all(exp.Cast) if c.to.is_type(exp.DType.INT) and c.this.is_int]:
        cast.replace(cast.this.copy())
    for call in reversed([c for c in holder.find_all(exp.Anonymous) if c.name.lower() == _TEXT_CAST]):
        call.replace(exp.cast(call.expressions[0].copy(), exp.DType.TEXT))
    _name_functions(holder)
    for match in reversed(list(holder.find_all(exp.RegexpLike))):
        if "i" in (match.text("flag") or ""):
            match.replace(exp.RegexpILike(this=match.this.copy(), expression=match.expression.copy()))
    for negation in [n for n in holder.find_all(exp.Not) if isinstance(n.this, exp.Is)]:
        # sqlglot represents IS NOT as a negation of IS.
        tested, state = negation.this.this, negation.this.expression.sql("postgres")
        negation.replace(exp.Is(this=tested.copy(), expression=exp.Var(this=f"NOT {state}")))
    for between in list(holder.find_all(exp.Between)):
        low = exp.GTE(this=between.this.copy(), expression=between.args["low"].copy())
        high = exp.LTE(this=between.this.copy(), expression=between.args["high"].copy())
        between.replace(exp.And(this=low, expression=high))
    for within in [each for each in holder.find_all(exp.In) if each.expressions]:
        listed = exp.Array(expressions=[e.copy() for e in within.expressions])
        negated = isinstance(within.parent, exp.Not)
        of_list = exp.Anonymous(this="ALL" if negated else "ANY", expressions=[listed])
        compared = (exp.NEQ if negated else exp.EQ)(this=within.this.copy(), expression=of_list)
        (within.parent if negated and within.parent is not None else within).replace(compared)


def _plain_numeric(cast: exp.Cast) -> None:
    """A constant without declared digits, which has got its own."""
    number = plain_number(cast.this.name) if isinstance(cast.this, exp.Literal) else None
    given = tuple(int(part.name) for part in cast.to.expressions)
    if number is None or given != count_digits(number):
        return
    if number.is_signed():
        cast.set("to", exp.DataType.build("numeric", dialect="postgres"))
    elif given[1]:
        cast.replace(exp.Literal.number(cast.this.name))
    else:
        inner = exp.Paren(this=exp.Literal.number(cast.this.name))
        cast.replace(exp.cast(inner, exp.DataType.build("numeric", dialect="postgres")))


def _name_functions(holder: exp.Expr) -> None:
    for call in reversed([c for c in holder.find_all(exp.Anonymous) if c.name.lower() == "round_even"]):
        call.replace(exp.Round(this=call.expressions[0].copy()))
    for call in reversed([c for c in holder.find_all(exp.Anonymous) if c.name.lower().startswith(PREFIX)]):
        name = FUNCTION_NAMES.get(call.name.lower().removeprefix(PREFIX))
        if name is not None:
            arguments = [_document(a) if name.startswith("jsonb") else a.copy() for a in call.expressions]
            call.replace(exp.Anonymous(this=name, expressions=arguments))
    for literal in list(holder.find_all(exp.Literal)):
        # The flag that lets a dot match any character.
        if literal.is_string and literal.name.startswith("(?s)"):
            literal.replace(exp.Literal.string(literal.name.removeprefix("(?s)")))


def _document(node: exp.Expr) -> exp.Expr:
    """Documents are passed as text."""
    while isinstance(node, exp.Cast) and node.to.is_type(exp.DType.TEXT, exp.DType.JSON):
        node = node.this
    return node.copy()


def _type_constants(node: exp.Expr) -> None:
    """A constant takes the type of the column that it is compared with."""
    for here, there in ((node.this, "expression"), (node.expression, "this")):
        column = here.unnest().meta_get("column") if isinstance(here.unnest(), exp.Column) else None
        other = node.args[there].unnest()
        if column is None:
            continue
        for literal in list(other.find_all(exp.Literal)) if isinstance(other, exp.Anonymous) else [other]:
            _type_constant(literal, column)
        if column.type.kind is Kind.VARCHAR and isinstance(other, exp.Literal | exp.Anonymous | exp.Cast):
            here.replace(exp.cast(exp.Paren(this=here.copy()), exp.DType.TEXT))


def _type_constant(literal: exp.Expr, column: Column) -> None:
    negative = isinstance(literal, exp.Neg)
    number = literal.this if negative else literal
    if not isinstance(number, exp.Literal):
        return
    kind = column.type.kind
    if number.is_string:
        if kind not in _STRINGS:
            literal.replace(exp.cast(literal.copy(), exp.DataType.build(kind.value, dialect="postgres")))
        return
    whole = number.name.isdigit()
    if kind in _INTEGERS or (kind is Kind.NUMERIC and not whole) or kind not in _PLAIN:
        return
    target = Kind.DOUBLE if kind is Kind.REAL else kind
    type_ = exp.DataType.build(target.value, dialect="postgres")
    inner = exp.Literal.string(f"-{number.name}") if negative else exp.Paren(this=number.copy())
    literal.replace(exp.cast(inner, type_))


def _parenthesise(node: exp.Expr) -> None:
    parent = node.parent
    if isinstance(node, exp.Dot | exp.Paren) or isinstance(parent, exp.Paren):
        return
    if isinstance(node, exp.Connector) and type(parent) is type(node):
        return
    node.replace(exp.Paren(this=node.copy()))


# Words outside of constants.
_LITERAL: Final = re.compile(r"('(?:[^']|'')*')")
_WORDS: Final = (
    (re.compile(r"\b(any|all)\(", re.IGNORECASE), None),
    (re.compile(r"\barray\["), "ARRAY["),
    (re.compile(r" LIKE "), " ~~ "),
)
_SPELLINGS: Final = (
    (re.compile(r"CAST\(('(?:[^']|'')*'|\([^()]*\)|[\w\"]+) AS ([A-Za-z ]+(?:\([0-9, ]+\))?(?:\[\])?)\)"), r"\1::\2"),
    (re.compile(r"::([A-Z]+(?: PRECISION)?)\b"), None),
)  # fmt: skip
_TYPE_SPELLINGS: Final = {
    "INT": "integer",
    "DECIMAL": "numeric",
    "TIMESTAMPTZ": "timestamp with time zone",
    "TIMESTAMP": "timestamp without time zone",
}


def _spell_words(text: str) -> str:
    """
    >>> _spell_words("a = any(array[1]) OR b LIKE 'x LIKE any(y'")
    "a = ANY (ARRAY[1]) OR b ~~ 'x LIKE any(y'"
    """
    for pattern, replacement in _WORDS:
        text = "".join(
            part
            if part.startswith("'")
            else pattern.sub(replacement if replacement is not None else lambda m: f"{m.group(1).upper()} (", part)
            for part in _LITERAL.split(text)
        )
    return text


def _spell(text: str) -> str:
    text = _spell_words(text)
    for pattern, replacement in _SPELLINGS:
        if replacement is None:
            text = pattern.sub(lambda m: "::" + _TYPE_SPELLINGS.get(m.group(1), m.group(1).lower()), text)
        else:
            text = pattern.sub(replacement, text)
    return text


def index_key_text(facts: Facts, table: Table, index: Index, place: int, pretty: bool = False) -> str:
    """One key of an index, from 1; the included columns follow the keys."""
    columns = (*index.key, *index.include)
    if not 1 <= place <= len(columns):
        return ""
    column = table.column_by_id[columns[place - 1]]
    if not column.virtual or column.generated is None:
        return quote_name(column.name)
    text = expression_text(table, column.generated, pretty)
    # A call needs no parentheses.
    if text.endswith(")") and text[0] != "(":
        return text
    return f"({text if pretty else in_parentheses(text)})"


def index_definition(facts: Facts, table: Table, index: Index, pretty: bool = False) -> str:
    keys = []
    for place, column in enumerate(index.key, 1):
        keys.append(index_key_text(facts, table, index, place, pretty) + index.order_of(column))
    unique = "UNIQUE " if index.unique else ""
    owner = full_name(facts, table) if pretty else f"{quote_name(table.schema)}.{quote_name(table.name)}"
    text = f"CREATE {unique}INDEX {quote_name(index.name)} ON {owner} USING btree ({', '.join(keys)})"
    if index.include:
        text += f" INCLUDE ({_names(table, index.include)})"
    if not index.nulls_distinct:
        text += " NULLS NOT DISTINCT"
    if index.where is not None:
        where = expression_text(table, index.where, pretty)
        text += f" WHERE {where if pretty else in_parentheses(where)}"
    return text


def in_parentheses(text: str) -> str:
    """
    >>> in_parentheses("a > 0"), in_parentheses("(a) OR (b)"), in_parentheses("(a > 0)"), in_parentheses("lower(a)")
    ('(a > 0)', '((a) OR (b))', '(a > 0)', 'lower(a)')
    """
    return text if _is_enclosed(text) or " " not in text else f"({text})"


def _is_enclosed(text: str) -> bool:
    """Whether its first parenthesis is closed by its last character; quoted text does not count."""
    depth, quoted = 0, False
    for at, character in enumerate(text):
        if character == "'":
            quoted = not quoted
        elif not quoted:
            depth += (character == "(") - (character == ")")
        if depth == 0:
            return text.startswith("(") and at == len(text) - 1
    return False


def _names(table: Table, columns: tuple[int, ...]) -> str:
    return ", ".join(quote_name(table.column_by_id[c].name) for c in columns)  # type: ignore[index]


def constraint_definition(
    facts: Facts, table: Table, constraint: Index | Check | ForeignKey, pretty: bool = False
) -> str:
    match constraint:
        case Index():
            kind = "PRIMARY KEY" if constraint.id == table.primary.id else "UNIQUE"
            nulls = "" if constraint.nulls_distinct else " NULLS NOT DISTINCT"
            include = f" INCLUDE ({_names(table, constraint.include)})" if constraint.include else ""
            return f"{kind}{nulls} ({_names(table, constraint.key)}){include}"
        case Check():
            return f"CHECK ({check_text(table, constraint, pretty)}){_late(constraint)}"
        case ForeignKey():
            return _foreign_key_definition(facts, table, constraint)


def check_text(table: Table, check: Check, pretty: bool = False) -> str:
    text = expression_text(table, check.expression, pretty)
    return text if pretty else in_parentheses(text)


def _foreign_key_definition(facts: Facts, table: Table, key: ForeignKey) -> str:
    parent = facts.by_id[key.parent]
    assert isinstance(parent, Table)
    parent_key = parent.index_by_id[key.parent_index].key
    referred = f"{full_name(facts, parent)}({_names(parent, parent_key)})"
    text = f"FOREIGN KEY ({_names(table, key.columns)}) REFERENCES {referred}"
    if key.match_full:
        text += " MATCH FULL"
    if key.on_update is not Action.NO_ACTION:
        text += f" ON UPDATE {key.on_update.value}"
    if key.on_delete is not Action.NO_ACTION:
        text += f" ON DELETE {key.on_delete.value}"
    if key.deferrable:
        text += " DEFERRABLE" + (" INITIALLY DEFERRED" if key.initially_deferred else "")
    return text + _late(key)


def _late(constraint: Check | ForeignKey) -> str:
    return "" if constraint.state is State.PUBLIC else " NOT VALID"


def generated_text(table: Table, column: Column) -> str | None:
    return None if column.generated is None else in_parentheses(expression_text(table, column.generated))

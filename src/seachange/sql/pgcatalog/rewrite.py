"""Rewrites for catalog queries: casts to object names, operators and types qualified by a schema, zero-based vectors.

They run before the guard, on the parsed tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from sqlglot import exp
from sqlglot.errors import SqlglotError

from seachange import errors
from seachange.sql.pgcatalog.builtin import CATALOG_OIDS, INFORMATION_SCHEMA, PG_CATALOG
from seachange.sql.text.scope import is_cte_reference
from seachange.sql.translate.guard import REGISTERED_TYPES
from seachange.storage.duck_functions import PREFIX

# Types that are represented as text or as numbers; "char" is the one-byte type.
_TEXTS: Final = frozenset({"name", "char", "cstring", "regproc", "regprocedure", "regoper", "regoperator", "aclitem"})
_NUMBERS: Final[dict[str, str]] = {"oid": "BIGINT", "xid": "BIGINT", "cid": "BIGINT"}
# Columns that hold zero-based vectors.
_VECTORS: Final = frozenset({"indkey", "indclass", "indoption", "indcollation", "proargtypes", "i_indoption"})
# Characters of names have numbers from zero, too; pg_dump tells array types by the first.
_ZERO_BASED: Final = _VECTORS | {"typname"}
# Columns that refer to functions.
_PROCEDURES: Final = frozenset(
    {"typinput", "typoutput", "typreceive", "typsend", "typmodin", "typmodout", "typanalyze", "typsubscript"}
)
# Table functions that are relations here.
_SOURCES: Final = frozenset({"pg_available_extensions", "pg_get_keywords", "pg_partition_ancestors"})
_ARRAY_TEXT: Final = re.compile(r"\{([^{}\\]*)\}")
_ARRAY_ITEM: Final = re.compile(r'\s*(?:"([^"]*)"|([^",]*?))\s*(?:,|$)')
EXPAND_MACRO: Final = "expand_vector"
# Nodes that return a value unchanged.
_PASSING: Final = (exp.Alias, exp.Paren, exp.Case, exp.If, exp.Coalesce)
_SHOWING: Final = (exp.Cast, exp.DPipe, exp.Concat, exp.ArrayToString, exp.GroupConcat)
_LOOKED_AT: Final = (
    exp.Cast,
    exp.Dot,
    exp.Operator,
    exp.Collate,
    exp.Bracket,
    exp.Table,
    exp.Any,
    exp.CurrentSchemas,
    exp.DPipe,
)


def translate_catalog_forms(tree: exp.Expr) -> exp.Expr:
    found: list[exp.Expr] = list(tree.find_all(*_LOOKED_AT))
    if not found:
        return tree
    _name_catalogs(tree)
    _compare_procedures(tree)
    show_vectors(tree)
    # From the inside out: inner nodes are replaced before outer ones are copied.
    holder = exp.Paren(this=tree)
    for node in reversed(found):
        match node:
            case exp.Dot():
                _plain_call(node)
            case exp.Operator():
                _plain_operator(node)
            case exp.Collate():
                _plain_collation(node)
            case exp.Bracket():
                _count_from_one(node)
            case exp.Table():
                _plain_source(node)
            case exp.Any():
                _list_text(node)
            case exp.CurrentSchemas():
                node.replace(_own_schemas(node))
            case exp.DPipe():
                _join_options(node)
            case exp.Cast():
                _plain_cast(node)
            case _:
                pass
    plain: exp.Expr = holder.this.pop()
    return plain


def show_vectors(tree: exp.Expr) -> exp.Expr:
    """A vector is printed with spaces between its items."""
    for node in list(tree.find_all(exp.Column)):
        if node.name.lower() in _VECTORS and _is_shown(node):
            written: exp.Expr = exp.ArrayToString(this=node.copy(), expression=exp.Literal.string(" "))
            in_list = isinstance(node.parent, exp.Select)
            node.replace(exp.alias_(written, node.name, quoted=True) if in_list else written)
    return tree


def _name_catalogs(tree: exp.Expr) -> None:
    """`tableoid` is the OID of the relation."""
    wanted = [column for column in tree.find_all(exp.Column) if column.name.lower() == "tableoid"]
    for column in wanted:
        number = _oid_of(_source_of(column))
        if number is not None:
            in_list = isinstance(column.parent, exp.Select) and column.arg_key == "expressions"
            column.replace(exp.alias_(number, "tableoid") if in_list else number)


def _compare_procedures(tree: exp.Expr) -> None:
    """Functions are represented by their names: that of none is -, and its number 0."""
    for column in tree.find_all(exp.Column):
        if column.name.lower() not in _PROCEDURES or not isinstance(column.parent, exp.EQ | exp.NEQ):
            continue
        other = column.parent.right if column.arg_key == "this" else column.parent.left
        source = _source_of(column)
        is_none = isinstance(other, exp.Literal) and other.name == "0"
        if is_none and source is not None and source.name.lower() == "pg_type" and source.db in ("", PG_CATALOG):
            other.replace(exp.Literal.string("-"))


def _source_of(column: exp.Column) -> exp.Table | None:
    """The relation that it is a column of."""
    query = column.find_ancestor(exp.Select)
    while query is not None:
        from_ = query.args.get("from_")
        sources = [from_.this if from_ is not None else None, *(j.this for j in query.args.get("joins") or ())]
        named = [each for each in sources if each is not None and column.table in ("", each.alias_or_name)]
        if named:
            only = named[0]
            is_plain = isinstance(only, exp.Table) and len(named) == 1 and not is_cte_reference(only)
            return only if is_plain and isinstance(only.this, exp.Identifier) else None
        query = query.find_ancestor(exp.Select)
    return None


def _oid_of(table: exp.Table | None) -> exp.Expr | None:
    if table is None:
        return None
    oid = CATALOG_OIDS.get(table.name.lower())
    if oid is not None and table.db in ("", PG_CATALOG):
        return exp.Literal.number(oid)
    query = table.find_ancestor(exp.Select)
    if query is not None and any(join.side for join in query.args.get("joins") or ()):
        raise errors.FeatureNotSupported(feature="tableoid in an outer join", instead="Compare a column of the key.")
    names = [part for part in (table.args.get("db"), table.this) if part is not None]
    name = ".".join(exp.to_identifier(part.name, quoted=True).sql("postgres") for part in names)
    return exp.Anonymous(this="regclassin", expressions=[exp.Literal.string(name)])


def _plain_call(dot: exp.Dot) -> None:
    """A qualified function call is parsed like an unqualified one."""
    call = dot.expression
    if not isinstance(call, exp.Anonymous) or not isinstance(dot.this, exp.Identifier):
        return
    schema, name = dot.this.name.lower(), call.name.lower()
    if schema == INFORMATION_SCHEMA and name == "_pg_expandarray":
        dot.replace(exp.Anonymous(this=name, expressions=[a.copy() for a in call.expressions]))
    elif schema == PG_CATALOG:
        plain = exp.func(name, *(a.copy() for a in call.expressions), dialect="postgres")
        # Its class is one of those searched for, but it did not exist during the search.
        dot.replace(_own_schemas(plain) if isinstance(plain, exp.CurrentSchemas) else plain)


def _join_options(node: exp.DPipe) -> None:
    """NULL options of a relation count as empty when others are appended."""
    options = node.this
    if isinstance(options, exp.Column) and options.name.lower() == "reloptions":
        none = exp.cast(exp.Array(expressions=[]), exp.DataType.build("TEXT[]", dialect="postgres"))
        node.set("this", exp.Coalesce(this=options.copy(), expressions=[none]))


def _own_schemas(node: exp.CurrentSchemas) -> exp.Expr:
    if node.this is None:
        raise errors.UndefinedFunction(detail="function current_schemas() does not exist")
    return exp.Anonymous(this="current_schemas", expressions=[node.this.copy()])


_OPERATORS: Final[dict[str, tuple[type[exp.Expr], bool]]] = {
    "~": (exp.RegexpLike, False),
    "!~": (exp.RegexpLike, True),
    "~*": (exp.RegexpILike, False),
    "!~*": (exp.RegexpILike, True),
    "=": (exp.EQ, False),
    "<>": (exp.NEQ, False),
    "~~": (exp.Like, False),
    "!~~": (exp.Like, True),
    "||": (exp.DPipe, False),
}


def _plain_operator(node: exp.Operator) -> None:
    spelled = str(node.args.get("operator")).rpartition(".")[2]
    made = _OPERATORS.get(spelled)
    if made is None:
        return
    plain: exp.Expr = made[0](this=node.this.copy(), expression=node.expression.copy())
    node.replace(exp.Not(this=plain) if made[1] else plain)


def _plain_collation(node: exp.Collate) -> None:
    """Texts are compared by their bytes: the default, "C" and POSIX are the same here."""
    name = node.expression.name.lower() if isinstance(node.expression, exp.Column | exp.Identifier | exp.Var) else ""
    if name in ("default", "c", "posix"):
        node.replace(node.this.copy())


def _count_from_one(node: exp.Bracket) -> None:
    if not isinstance(node.this, exp.Column) or node.this.name.lower() not in _ZERO_BASED or len(node.expressions) != 1:
        return
    # The parser has already subtracted one.
    node.set("expressions", [exp.Add(this=exp.paren(node.expressions[0].copy()), expression=exp.Literal.number(1))])


def _plain_source(table: exp.Table) -> None:
    """A qualified function in FROM; some are relations here."""
    call = table.this.expression if isinstance(table.this, exp.Dot) else table.this
    if not isinstance(call, exp.Func):
        return
    name = call.name.lower() if isinstance(call, exp.Anonymous) else ""
    if name == "pg_options_to_table" and len(call.expressions) == 1:
        table.replace(_options(call.expressions[0].copy(), table.args.get("alias")))
    elif name in _SOURCES:
        table.set("this", exp.to_identifier(name))
        table.set("db", exp.to_identifier(PG_CATALOG))
    elif table.db.lower() == PG_CATALOG:
        table.set("db", None)
        if name == "unnest":
            arguments = [argument.copy() for argument in call.expressions]
            table.replace(exp.Unnest(expressions=arguments, alias=table.args.get("alias")))
        elif name:
            table.set("this", exp.func(name, *(a.copy() for a in call.expressions), dialect="postgres"))


def _options(listed: exp.Expr, alias: exp.Expr | None) -> exp.Subquery:
    """Texts of the form name=value as rows."""
    option, sign = exp.column("option", quoted=True), exp.Literal.string("=")
    after = exp.Add(this=exp.StrPosition(this=option.copy(), substr=sign.copy()), expression=exp.Literal.number(1))
    name = exp.SplitPart(this=option.copy(), delimiter=sign, part_index=exp.Literal.number(1))
    value = exp.Substring(this=option, start=after)
    names = exp.TableAlias(this=exp.to_identifier("options"), columns=[exp.to_identifier("option", quoted=True)])
    query = exp.Select(
        expressions=[exp.alias_(name, "option_name"), exp.alias_(value, "option_value")],
        from_=exp.From(this=exp.Unnest(expressions=[listed], alias=names)),
    )
    return exp.Subquery(this=query, alias=alias if alias is not None else exp.TableAlias(this=exp.to_identifier("o")))


def name_function_columns(tree: exp.Expr) -> exp.Expr:
    """The alias of a function in FROM is also the name of its column; several lists are unnested in parallel."""
    for node in list(tree.find_all(exp.Unnest, exp.Table)):
        alias = node.args.get("alias")
        if isinstance(node, exp.Unnest):
            _take_apart(node)
        elif isinstance(node.this, exp.Func) and isinstance(alias, exp.TableAlias) and not alias.columns:
            alias.set("columns", [alias.this.copy()])
    return tree


def _take_apart(node: exp.Unnest) -> None:
    lateral = node.parent if isinstance(node.parent, exp.Lateral) else None
    named_by = lateral.args.get("alias") if lateral is not None else node.args.get("alias")
    if lateral is not None and (not node.args.get("offset") or named_by is None):
        return
    alias = named_by or exp.TableAlias(this=exp.to_identifier("unnest"))
    offset = node.args.get("offset")
    if not alias.columns and len(node.expressions) == 1 and alias.this is not None:
        alias.set("columns", [alias.this.copy()])
    if len(node.expressions) == 1 and not offset:
        node.set("alias", alias)
        return
    named = [column.name for column in alias.columns]
    lists = [expression.copy() for expression in node.expressions]
    lengths = [exp.Anonymous(this="len", expressions=[each.copy()]) for each in lists]
    longest = exp.Anonymous(this="greatest", expressions=lengths) if len(lengths) > 1 else lengths[0]
    columns = [exp.Explode(this=each) for each in lists]
    names = [*named, *["unnest"] * len(lists)][: len(lists)]
    if offset:
        numbers = exp.Anonymous(this="generate_series", expressions=[exp.Literal.number(1), longest])
        columns.append(exp.Explode(this=numbers))
        names.append(offset.name if isinstance(offset, exp.Identifier) else "ordinality")
    shown = [exp.alias_(column, name, quoted=True) for column, name in zip(columns, names, strict=True)]
    alias.set("columns", None)
    node.replace(exp.Subquery(this=exp.Select(expressions=shown), alias=None if lateral is not None else alias))


def _list_text(node: exp.Any) -> None:
    literal = node.this.unnest()
    if isinstance(literal, exp.Literal) and literal.is_string:
        listed = _read_list(literal.name)
        if listed is not None:
            node.set("this", exp.Paren(this=listed))


def _read_list(text: str) -> exp.Array | None:
    """
    >>> _read_list("{r,p}").sql("duckdb")
    "['r', 'p']"
    """
    match = _ARRAY_TEXT.fullmatch(text.strip())
    if match is None:
        return None
    items: list[exp.Expr] = []
    inside, at = match.group(1), 0
    while at < len(inside):
        item = _ARRAY_ITEM.match(inside, at)
        if item is None:
            return None
        quoted, plain = item.groups()
        is_null = quoted is None and plain.upper() == "NULL"
        items.append(exp.null() if is_null else exp.Literal.string(plain if quoted is None else quoted))
        at = item.end()
    return exp.Array(expressions=items)


def _plain_cast(cast: exp.Cast) -> None:
    if cast.to.is_type(exp.DType.ARRAY):
        listed = _read_list(cast.this.name) if isinstance(cast.this, exp.Literal) and cast.this.is_string else None
        if listed is not None:
            cast.set("this", listed)
        inner = cast.to.expressions[0] if cast.to.expressions else None
        name = _type_name(inner) if inner is not None else None
        if name is not None:
            made = _made_type("text" if name in REGISTERED_TYPES else name)
            if made is not None:
                cast.set("to", exp.DataType(this=exp.DType.ARRAY, expressions=[made], nested=True))
        return
    name = _type_name(cast.to)
    if name is None:
        return
    if name == "regproc" and isinstance(cast.this, exp.Literal):
        cast.set("this", exp.Literal.string(cast.this.name.removeprefix(f"{PG_CATALOG}.")))
    if name == "oid":
        cast.replace(exp.Anonymous(this="oidin", expressions=[cast.this.copy()]))
        return
    if name in REGISTERED_TYPES:
        value = exp.cast(cast.this.copy(), exp.DType.TEXT)
        cast.replace(exp.Anonymous(this=f"{name}{'out' if _is_shown(cast) else 'in'}", expressions=[value]))
        return
    made = _made_type(name)
    if made is not None:
        cast.set("to", made)


def _type_name(type_: exp.Expr) -> str | None:
    """The name of a type that sqlglot does not know, or that is qualified."""
    if isinstance(type_, exp.ObjectIdentifier):
        return str(type_.this).lower()
    if not isinstance(type_, exp.DataType):
        return None
    if type_.this is exp.DType.NAME:
        return "name"
    match type_.args.get("kind"):
        case exp.Identifier() as name:
            return name.name.lower()
        case exp.Dot(this=exp.Identifier() as schema, expression=exp.Identifier() as name):
            return name.name.lower() if schema.name.lower() == PG_CATALOG else None
        case _:
            return None


def _made_type(name: str) -> exp.DataType | None:
    if name in _TEXTS:
        return exp.DataType.build("TEXT")
    if name in _NUMBERS:
        return exp.DataType.build(_NUMBERS[name], dialect="duckdb")
    try:
        made = exp.DataType.build(name, dialect="postgres")
    except SqlglotError:
        return None
    return None if made.this is exp.DType.USERDEFINED else made


def _is_shown(node: exp.Expr) -> bool:
    """Whether the object's name is needed, rather than its OID: as text, or in the select list of the statement."""
    below, above = node, node.parent
    while isinstance(above, _PASSING):
        # A condition compares OIDs.
        if below.arg_key == "this" and isinstance(above, exp.If | exp.Case) and not isinstance(above, exp.Coalesce):
            return False
        below, above = above, above.parent
    if isinstance(above, exp.Cast):
        return above.to.is_type(exp.DType.TEXT, exp.DType.VARCHAR) or _type_name(above.to) in ("text", "varchar")
    if isinstance(above, _SHOWING):
        return True
    if not isinstance(above, exp.Select) or below.arg_key != "expressions":
        return False
    outer = above.parent
    while isinstance(outer, exp.SetOperation):
        outer = outer.parent
    return outer is None or (isinstance(outer, exp.Paren) and outer.parent is None)


# They find an object by its name, and print it.
_LOOK_UPS: Final = frozenset(f"to_{name}" for name in REGISTERED_TYPES)


def translate_catalog_calls(tree: exp.Expr) -> exp.Expr:
    """Replaces catalog functions that equal other expressions."""
    for node in reversed(list(tree.find_all(exp.Anonymous))):
        if node.name.lower() in _LOOK_UPS and _is_shown(node):
            node.set("this", f"{node.name.lower()}_name")
        made = _REWRITES.get(node.name.lower())
        if made is not None and node.expressions:
            node.replace(made(node))
    return tree


def _expression(node: exp.Anonymous) -> exp.Expr:
    """The catalogs store expressions as printed text; a predicate printed with `pretty` has no enclosing
    parentheses."""
    text: exp.Expr = node.expressions[0].copy()
    pretty = node.expressions[2] if len(node.expressions) > 2 else None
    is_predicate = isinstance(text, exp.Column) and text.name.lower() == "indpred"
    if not is_predicate or not isinstance(pretty, exp.Boolean) or not pretty.this:
        return text
    return exp.Anonymous(this=f"{PREFIX}bare", expressions=[text])


def _expand(node: exp.Anonymous) -> exp.Expr:
    return exp.Anonymous(this=EXPAND_MACRO, expressions=[node.expressions[0].copy()])


def _subscripts(node: exp.Anonymous) -> exp.Expr:
    listed = node.expressions[0]
    is_vector = isinstance(listed, exp.Column) and listed.name.lower() in _VECTORS
    first = exp.Literal.number(0 if is_vector else 1)
    last: exp.Expr = exp.Anonymous(this="len", expressions=[listed.copy()])
    last = exp.Sub(this=last, expression=exp.Literal.number(1)) if is_vector else last
    return exp.Explode(this=exp.Anonymous(this="generate_series", expressions=[first, last]))


def _number(node: exp.Anonymous) -> exp.Expr:
    return exp.cast(node.expressions[0].copy(), exp.DataType.build("UINTEGER", dialect="duckdb"))


def _length(node: exp.Anonymous) -> exp.Expr:
    length = exp.Anonymous(this="len", expressions=[node.expressions[0].copy()])
    found = exp.Anonymous(this="nullif", expressions=[length, exp.Literal.number(0)])
    dimension = node.expressions[1] if len(node.expressions) > 1 else None
    if dimension is None or (isinstance(dimension, exp.Literal) and dimension.name == "1"):
        return found
    return exp.case().when(exp.EQ(this=exp.paren(dimension.copy()), expression=exp.Literal.number(1)), found)


_REWRITES: Final[dict[str, Callable[[exp.Anonymous], exp.Expr]]] = {
    "pg_get_expr": _expression,
    "_pg_expandarray": _expand,
    "generate_subscripts": _subscripts,
    "oidin": _number,
    "array_upper": _length,
}

"""Set-returning functions: in FROM a query over the list that they return, in a select list DuckDB's unnest.

A source of one column may be named as a whole, as in `SELECT e FROM jsonb_array_elements(d) e`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from seachange import errors
from seachange.sql.bind.names import function_name
from seachange.sql.translate.mapped.documents import as_document
from seachange.sql.translate.mapped.trees import call, number, whole_value
from seachange.storage.duck_functions import PREFIX

_ITEM: Final = "item"
_ORDINALITY: Final = "ordinality"


@dataclass(frozen=True, slots=True)
class TableCall:
    """`listing` gives the rows as a list; `columns` are those of its items, or the one that an item itself is. A column
    without a name is called as the source is. `documents` are the columns that hold some."""

    listing: str
    columns: tuple[str, ...] = ("",)
    documents: tuple[str, ...] = ()


_MEMBERS: Final = ("key", "value")
_CALLS: Final[dict[str, TableCall]] = {
    "json_array_elements": TableCall("json_elements", ("value",), ("value",)),
    "json_array_elements_text": TableCall("json_element_texts", ("value",)),
    "json_each": TableCall("json_members", _MEMBERS, ("value",)),
    "json_each_text": TableCall("json_member_texts", _MEMBERS),
    "json_object_keys": TableCall("json_keys"),
    "jsonb_path_query": TableCall("path_items", ("",), ("",)),
    "regexp_matches": TableCall("regexp_all"),
    "regexp_split_to_table": TableCall("regexp_parts"),
    "string_to_table": TableCall("string_parts"),
    "generate_subscripts": TableCall("subscripts"),
}
TABLE_CALLS: Final[dict[str, TableCall]] = {
    **_CALLS,
    **{name.replace("json_", "jsonb_", 1): made for name, made in _CALLS.items() if name.startswith("json_")},
}
# In the list of a query those of a catalog's vectors are counted from 0.
_LISTED_ELSEWHERE: Final = frozenset({"generate_subscripts"})
# Those whose columns the alias declares; of one document, or of each in an array.
RECORD_CALLS: Final[dict[str, bool]] = {
    "json_to_record": False,
    "json_to_recordset": True,
    "jsonb_to_record": False,
    "jsonb_to_recordset": True,
}


def expand_table_calls(tree: exp.Expr) -> exp.Expr:
    for node in list(tree.find_all(exp.Table, exp.Lateral)):
        source = node.this
        if isinstance(source, exp.ExplodingGenerateSeries | exp.GenerateSeries):
            _type_series(node, source)
        elif isinstance(source, exp.Func):
            name = function_name(source)
            if name in TABLE_CALLS:
                _expand(node, source, name)
            elif name in RECORD_CALLS:
                node.replace(_records(node, source, RECORD_CALLS[name]))
    holder = exp.Paren(this=tree)
    for series in list(holder.find_all(exp.ExplodingGenerateSeries)):
        _list_fractions(series)
    for call_ in reversed(list(holder.find_all(exp.Func))):
        name = function_name(call_)
        made = TABLE_CALLS.get(name) if name not in _LISTED_ELSEWHERE else None
        if made is not None:
            call_.replace(_exploded(call_, made))
    return holder.this.pop()  # type: ignore[no-any-return]


_INT_MAX: Final = 2**31 - 1


def _type_series(node: exp.Expr, source: exp.Func) -> None:
    """As far as constants tell what a series is of: DuckDB's of whole numbers is one of bigint, it has none of numbers
    with a fraction, and one of dates is one of moments without a zone."""
    given = [source.args.get(key) for key in ("start", "end", "step")]
    bounds = [part for part in given if isinstance(part, exp.Expr)]
    for part in bounds:
        if isinstance(part, exp.Cast) and part.to.is_type(exp.DType.DATE):
            part.replace(exp.cast(part.copy(), exp.DType.TIMESTAMPTZ))
    if node.args.get("ordinality") or not all(map(_is_number, bounds)):
        return
    inside = exp.TableAlias(this=exp.to_identifier("series"), columns=[exp.to_identifier(_ITEM)])
    value: exp.Expr = exp.column(_ITEM)
    known = [whole_value(part.unnest()) for part in bounds]
    if None in known:
        start, end, step = [*(part.copy() for part in bounds), number(1)][:3]
        rows: exp.Expr = exp.Unnest(expressions=[call(PREFIX + "series", start, end, step)], alias=inside)
    else:
        rows = exp.Table(this=source.copy(), alias=inside)
        if all(abs(each or 0) <= _INT_MAX for each in known):
            value = exp.cast(value, exp.DType.INT)
    alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier("generate_series"))
    name = alias.columns[0].name if alias.columns else alias.name
    query = exp.Select(expressions=[exp.alias_(value, name, quoted=True)], from_=exp.From(this=rows))
    node.replace(exp.Subquery(this=query, alias=exp.TableAlias(this=alias.this.copy())))


def _list_fractions(source: exp.Func) -> None:
    """In the list of a query, a series of constants with a fraction."""
    given = [source.args.get(key) for key in ("start", "end", "step")]
    bounds = [part for part in given if isinstance(part, exp.Expr)]
    in_list = not isinstance(source.parent, exp.Table | exp.Lateral)
    if in_list and all(map(_is_number, bounds)) and None in [whole_value(part.unnest()) for part in bounds]:
        start, end, step = [*(part.copy() for part in bounds), number(1)][:3]
        source.replace(exp.Explode(this=call(PREFIX + "series", start, end, step)))


def _is_number(node: exp.Expr) -> bool:
    inner = node.unnest()
    inner = inner.this if isinstance(inner, exp.Neg) else inner
    return isinstance(inner, exp.Literal) and not inner.is_string


def _listed(source: exp.Func, made: TableCall) -> exp.Expr:
    given = [argument.copy() for argument in source.expressions]
    if made.listing.startswith("json"):
        given = [exp.cast(given[0], exp.DType.TEXT)]
    return call(PREFIX + made.listing, *given)


def _exploded(source: exp.Func, made: TableCall) -> exp.Expr:
    if len(made.columns) > 1:
        feature = f"{function_name(source)} outside of FROM"
        raise errors.FeatureNotSupported(feature=feature, instead="Put it into FROM.")
    item = exp.Explode(this=_listed(source, made))
    return as_document(item) if made.documents else item


def _expand(node: exp.Expr, source: exp.Func, name: str) -> None:
    made = TABLE_CALLS[name]
    alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name))
    item = exp.column(_ITEM)
    own = [column or alias.name for column in made.columns]
    if len(own) > 1:
        values: list[exp.Expr] = [exp.Dot(this=item.copy(), expression=exp.to_identifier(column)) for column in own]
    else:
        values = [item]
    shown = [as_document(v) if column in made.documents else v for v, column in zip(values, made.columns, strict=True)]
    listed = _listed(source, made)
    inner = [exp.alias_(exp.Explode(this=listed), _ITEM)]
    if node.args.get("ordinality"):
        length = exp.Anonymous(this="len", expressions=[listed.copy()])
        numbers = exp.Anonymous(this="generate_series", expressions=[exp.Literal.number(1), length])
        inner.append(exp.alias_(exp.Explode(this=numbers), _ORDINALITY))
        shown.append(exp.column(_ORDINALITY))
        own.append(_ORDINALITY)
    given = [column.name for column in alias.columns]
    names = [*given, *own[len(given) :]]
    rows = exp.Subquery(this=exp.Select(expressions=inner), alias=exp.TableAlias(this=exp.to_identifier("listed")))
    query = exp.Select(
        expressions=[exp.alias_(value, label, quoted=True) for value, label in zip(shown, names, strict=True)],
        from_=exp.From(this=rows),
    )
    if len(names) == 1 and alias.name not in names:
        _name_whole(node, alias.name, names[0])
    node.replace(exp.Subquery(this=query, alias=exp.TableAlias(this=alias.this.copy())))


def _name_whole(node: exp.Expr, alias: str, column: str) -> None:
    """Where the source as a whole is named, its one column is meant."""
    query = node.find_ancestor(exp.Select)
    for named in list(query.find_all(exp.Column)) if query is not None else ():
        if not named.table and named.name == alias:
            value = exp.column(exp.to_identifier(column, quoted=True), table=exp.to_identifier(alias, quoted=True))
            in_list = isinstance(named.parent, exp.Select) and named.arg_key == "expressions"
            named.replace(exp.alias_(value, alias, quoted=True) if in_list else value)


def _records(node: exp.Expr, source: exp.Func, each: bool) -> exp.Expr:
    alias = node.args.get("alias")
    declared = alias.columns if alias is not None else []
    if alias is None or not declared or not all(isinstance(column, exp.ColumnDef) for column in declared):
        raise errors.SyntaxProblem(detail=f"a column definition list is required for {function_name(source)}")
    document = exp.cast(source.expressions[0].copy(), exp.DType.TEXT)
    listed = call(PREFIX + "json_elements", document) if each else exp.Array(expressions=[document])
    inner = exp.Select(expressions=[exp.alias_(exp.Explode(this=listed), _ITEM)])
    rows = exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier("listed")))
    columns = [exp.alias_(_member(column), column.name, quoted=True) for column in declared]
    query = exp.Select(expressions=columns, from_=exp.From(this=rows))
    return exp.Subquery(this=query, alias=exp.TableAlias(this=alias.this.copy()))


def _member(column: exp.ColumnDef) -> exp.Expr:
    found = call(PREFIX + "json_field", exp.column(_ITEM), exp.Literal.string(column.name))
    kind = column.args["kind"]
    if kind.is_type(exp.DType.JSON, exp.DType.JSONB):
        return as_document(found)
    return exp.cast(call(PREFIX + "json_text", found), kind.copy())

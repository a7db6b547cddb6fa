"""Query templates: a query checked and translated to DuckDB without looking at any table, with holes for the scans of
tables.

The passes are pure functions on a copy of the parsed tree, in the order of `_PASSES`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ErrorLevel, UnsupportedError

from seachange import errors
from seachange.runtime.interruption import check_interrupt
from seachange.sql.bind.output_names import name_columns, output_names
from seachange.sql.bind.query import bind_tree
from seachange.sql.bind.scope import BindCatalog, Columns, NoCatalog
from seachange.sql.bind.types import BoundType, bound
from seachange.sql.compile.bound_catalog import NOTHING_RESOLVED, PortCatalog, Resolved
from seachange.sql.compile.feed_calls import CALL, FeedCall, mark_feeds
from seachange.sql.compile.join_keys import LINKS, PLACE, Link, note_links
from seachange.sql.compile.seek import DEMANDS, SeekCondition, note_demands
from seachange.sql.compile.type_holes import ARGUMENT, TYPE_HOLES, TypeHole, cut_types, fill_types
from seachange.sql.duck.sequence_calls import name_calls, plain_names
from seachange.sql.pgcatalog.calls import name_catalog_calls
from seachange.sql.pgcatalog.rewrite import name_function_columns, translate_catalog_calls, translate_catalog_forms
from seachange.sql.text.scope import GIVEN, WITH_HIDDEN, is_cte_reference
from seachange.sql.text.tree import INCOMPLETE, fold_names
from seachange.sql.translate.casts import translate_casts
from seachange.sql.translate.function_map import map_functions
from seachange.sql.translate.guard import check_text, check_tree
from seachange.sql.translate.json_operators import translate_json
from seachange.sql.translate.mapped.aggregates import gather_documents, guard_filtered, join_by_values
from seachange.sql.translate.networks import note_networks, translate_networks
from seachange.sql.translate.quantified import join_long_lists, match_patterns, translate_quantifiers
from seachange.sql.translate.result_types import declare_results
from seachange.sql.translate.row_values import expand_rows, show_rows
from seachange.sql.translate.size_limits import bound_sizes
from seachange.sql.translate.sources import expand_sources
from seachange.sql.translate.table_functions import expand_table_calls
from seachange.sql.translate.time_functions import name_moments
from seachange.sql.translate.typed import note_types, translate_by_type
from seachange.storage.duck import SPAN_MACRO, SPAN_PARTS, SUM_MACRO
from seachange.values.types import SqlType

# Marks the place of a scan in generated text. No statement can contain it: the guard rejects NUL and escapes for it.
_HOLE = "\x00"
_TABLE_HOLES = re.compile(f"{_HOLE}([0-9]+){_HOLE}")
SESSION_SCHEMA = "session_schema"
SESSION_ROLE = "session_role"
SESSION_USER = "session_user"
# Values of the session, by the parameters that replace them, and values that are the same for all sessions.
_SESSION_VALUES: dict[type[exp.Expr], str] = {
    exp.CurrentUser: SESSION_ROLE,
    exp.CurrentRole: SESSION_ROLE,
    exp.SessionUser: SESSION_USER,
    exp.CurrentSchema: SESSION_SCHEMA,
    exp.CurrentDatabase: "session_database",
    exp.CurrentCatalog: "session_database",
}
_CONSTANTS: dict[type[exp.Expr], str] = {
    exp.CurrentVersion: "PostgreSQL 15.0 (Seachange)",
}
# With these a statement may end before it has read everything, or read only what another table leads to.
_STOPPING = (exp.Limit, exp.Fetch, exp.Lateral)

# These may refer to columns by their position in the select list.
_COUNTING_COLUMNS = ("distinct", "group", "order")


class _DuckDB(DuckDB):
    # The order in which our DuckDB sorts; any other order is written out.
    NULL_ORDERING = "nulls_are_large"


# Key of `meta` of a sum of intervals.
_OF_SPANS = "of_spans"


@dataclass(frozen=True, slots=True)
class TableReference:
    """`columns` are names, in lower case, that include all columns that the statement reads, None for any; `sought`
    those by whose values it may skip rows, None if for other reasons too; `demands` are its conditions."""

    schema: str | None
    name: str
    hidden: bool
    columns: frozenset[str] | None = None
    sought: frozenset[str] | None = None
    given: bool = False
    demands: tuple[SeekCondition, ...] = ()
    # The number of a reference that has links to others.
    number: int = -1
    links: tuple[Link, ...] = ()
    feed: FeedCall | None = None


@dataclass(frozen=True, slots=True)
class Template:
    """DuckDB text around the scans: `pieces[0] scan(tables[0]) pieces[1] ...`. `parameters` are the numbers of the
    user's parameters that occur; `names` the result's column names where the text decides them; `session_values` the
    parameters that the session provides. `types` are the type holes in `typed_pieces`; if there are none, `pieces` is
    used."""

    pieces: tuple[str, ...]
    tables: tuple[TableReference, ...]
    parameters: tuple[int, ...]
    names: tuple[str | None, ...] | None
    cte_names: frozenset[str]
    session_values: tuple[str, ...] = ()
    types: tuple[TypeHole, ...] = ()
    typed_pieces: tuple[str, ...] = ()
    # The result columns as the binder found them, None if it could not.
    columns: Columns = None
    # What the binder found in the catalog.
    resolved: Resolved = NOTHING_RESOLVED
    # Those of the parameters that are arguments of sources only: the text has none of them.
    unwritten: frozenset[int] = frozenset()

    def fill(self, scans: Sequence[str], types: Sequence[str] | None = None) -> str:
        """`types` are the texts for the type holes; None if there are none that matter."""
        pieces = self.pieces if types is None else self.typed_pieces
        parts = [pieces[0]]
        for scan, piece in zip(scans, pieces[1:], strict=True):
            parts += (scan, piece)
        return "".join(parts) if types is None else fill_types(parts, types)


def parameter_name(number: int) -> str:
    return f"{ARGUMENT}{number}"


def compile_template(
    tree: exp.Expr,
    timed: bool = True,
    catalog: BindCatalog | None = None,
    declared: Sequence[SqlType | None] = (),
) -> Template:
    """Takes ownership of the tree. Unless `timed`, time functions are left for later. With a catalog, the template is
    valid while what it found there `is_current`. `declared` are the types of parameters, as far as they are known."""
    tree = mark_feeds(fold_names(plain_names(tree)))
    given = [bound(type_) if type_ is not None else None for type_ in declared]
    binding = bind_tree(tree, catalog or NoCatalog(), given)
    note_networks(tree, binding.found.types)
    note_types(binding.found)
    _note_spans(tree, binding.found.types)
    names = output_names(tree)
    tree = translate_catalog_forms(name_columns(tree))
    check_tree(tree)
    for transform in _PASSES:
        check_interrupt()
        tree = transform(tree)
    parameters = sorted({int(node.this.name) for node in tree.find_all(exp.Parameter)})
    cte_names = frozenset(cte.alias.lower() for cte in tree.find_all(exp.CTE))
    for node in list(tree.find_all(exp.Parameter)):
        node.set("this", exp.Var(this=parameter_name(int(node.this.name))))
    moments = name_moments(tree) if timed else set()
    session_values = tuple(sorted(_name_session_values(tree) | moments | name_calls(tree) | name_catalog_calls(tree)))
    check_interrupt()
    types = cut_types(tree, calculations=timed)
    check_interrupt()
    tables = _cut_holes(tree)
    generated = _generate(tree)
    check_text(TYPE_HOLES.sub(" ", generated).replace(_HOLE, " "))
    pieces = _TABLE_HOLES.split(generated)
    unwritten = frozenset(n for n in parameters if not re.search(rf"\${parameter_name(n)}\b", generated))
    in_order = tuple(tables[int(number)] for number in pieces[1::2])
    return Template(
        tuple(TYPE_HOLES.sub("", piece) for piece in pieces[0::2]) if types else tuple(pieces[0::2]),
        in_order,
        tuple(parameters),
        names,
        cte_names,
        session_values,
        types,
        tuple(pieces[0::2]),
        binding.columns,
        catalog.resolved if isinstance(catalog, PortCatalog) else NOTHING_RESOLVED,
        unwritten if any(table.feed for table in tables) else frozenset(),
    )


def _plain_forms(tree: exp.Expr) -> exp.Expr:
    """`public.t.a` becomes `t.a`, `pg_catalog.lower(a)` becomes `lower(a)`, and E'...' a string with its escapes
    resolved. EXISTS (SELECT FROM t) gets a select list, which DuckDB requires."""
    for node in list(tree.find_all(exp.Column, exp.Dot, exp.ByteString, exp.Exists)):
        match node:
            case exp.Column():
                node.set("db", None)
                node.set("catalog", None)
            case exp.Dot() if isinstance(node.expression, exp.Func):
                node.replace(node.expression.pop())
            case exp.ByteString():
                node.replace(exp.Literal.string(str(node.this)))
            case exp.Exists(this=exp.Select() as query) if not query.expressions:
                query.set("expressions", [exp.Literal.number(1)])
    return tree


def _note_spans(tree: exp.Expr, types: Mapping[int, BoundType]) -> None:
    for node in tree.find_all(exp.Sum):
        type_ = types.get(id(node))
        if type_ is not None and type_.name == "interval":
            node.meta[_OF_SPANS] = True


def _sum_numbers(tree: exp.Expr) -> exp.Expr:
    """A macro returns the type that `sum` has in PostgreSQL, and sums intervals. An aggregate with FILTER or OVER
    cannot be a macro: of intervals, each part is summed so."""
    for node in list(tree.find_all(exp.Sum)):
        whole: exp.Expr = node
        while isinstance(whole.parent, exp.Filter | exp.Window | exp.WithinGroup) and whole.arg_key == "this":
            whole = whole.parent
        if isinstance(node.this, exp.Distinct | exp.Order):
            continue
        if whole is node:
            node.replace(exp.Anonymous(this=SUM_MACRO, expressions=[node.this.copy()]))
        elif node.meta_get(_OF_SPANS):
            whole.replace(exp.Anonymous(this=SPAN_MACRO, expressions=[_sum_part(whole, part) for part in SPAN_PARTS]))
    return tree


def _sum_part(whole: exp.Expr, part: str) -> exp.Expr:
    made = whole.copy()
    inner = made
    while not isinstance(inner, exp.Sum):
        inner = inner.this
    inner.set("this", exp.Anonymous(this=part, expressions=[inner.this.copy()]))
    return made


_PASSES: tuple[Callable[[exp.Expr], exp.Expr], ...] = (
    _plain_forms,
    translate_by_type,
    guard_filtered,
    show_rows,
    expand_sources,
    expand_table_calls,
    name_function_columns,
    translate_catalog_calls,
    declare_results,
    gather_documents,
    join_by_values,
    translate_networks,
    match_patterns,
    map_functions,
    translate_quantifiers,
    expand_rows,
    translate_casts,
    translate_json,
    bound_sizes,
    _sum_numbers,
    note_demands,
    note_links,
    join_long_lists,
)


def _name_session_values(tree: exp.Expr) -> set[str]:
    used: set[str] = set()
    for node in list(tree.find_all(*_SESSION_VALUES, *_CONSTANTS)):
        if type(node) in _CONSTANTS:
            node.replace(exp.Literal.string(_CONSTANTS[type(node)]))
            continue
        name = _SESSION_VALUES[type(node)]
        used.add(name)
        node.replace(exp.Parameter(this=exp.Var(this=name)))
    return used


def _cut_holes(tree: exp.Expr) -> tuple[TableReference, ...]:
    """Replaces every reference to a table of the catalog by a numbered hole."""
    found: list[TableReference] = []
    columns, sought = columns_read(tree), columns_sought(tree)
    nodes = [n for n in tree.find_all(exp.Table, bfs=False) if not isinstance(n.this, exp.Func)]
    nodes = [node for node in nodes if not is_cte_reference(node)]
    numbers = {node.meta[PLACE]: number for number, node in enumerate(nodes)}
    targets = {place for node in nodes for _, place, _ in node.meta_get(LINKS, ())}
    for node in nodes:
        number = len(found)
        hidden, given = bool(node.meta_get(WITH_HIDDEN)), bool(node.meta_get(GIVEN))
        read, demands = None if hidden else columns, node.meta_get(DEMANDS, ())
        noted = node.meta_get(LINKS, ())
        links = tuple(Link(column, numbers[place], other) for column, place, other in noted if place in numbers)
        known = number if links or node.meta[PLACE] in targets else -1
        found.append(
            TableReference(
                node.db or None,
                node.name,
                hidden,
                read,
                sought,
                given,
                demands,
                known,
                links,
                node.meta_get(CALL),
            )
        )
        alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(node.name, quoted=True))
        hole = exp.Subquery(this=exp.Var(this=f"{_HOLE}{number}{_HOLE}"), alias=alias)
        hole.set("joins", node.args.get("joins"))
        node.replace(hole)
    return tuple(found)


def _generate(tree: exp.Expr) -> str:
    """It takes the tree to pieces."""
    try:
        return tree.sql(_DuckDB, identify=True, comments=False, copy=False, unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError as error:
        raise errors.FeatureNotSupported(feature=str(error).splitlines()[0], instead="") from None
    except INCOMPLETE:
        raise errors.SyntaxProblem(detail="an argument is missing") from None


def columns_read(tree: exp.Expr) -> frozenset[str] | None:
    """Names, in lower case, that include all columns that are read; None if it may be any column.

    Every identifier counts that is not the name of a table in its place; what has no name (a star, a natural join, a
    table used as a value, columns renamed by position) counts as everything.
    """
    if any(not _reads_nothing(star) for star in tree.find_all(exp.Star)):
        return None
    if any(not select.expressions for select in tree.find_all(exp.Select)):
        return None
    if any(join.method for join in tree.find_all(exp.Join)):
        return None
    if any(alias.columns and not _renames_query(alias) for alias in tree.find_all(exp.TableAlias)):
        return None
    tables = {table.alias_or_name.lower() for table in tree.find_all(exp.Table)}
    if any(not column.table and column.name.lower() in tables for column in tree.find_all(exp.Column)):
        return None
    return frozenset(i.name.lower() for i in tree.find_all(exp.Identifier) if not _names_table(i))


def _reads_nothing(star: exp.Expr) -> bool:
    """The stars of count(*) and EXISTS (SELECT * ...), where only the number of rows matters."""
    select = star.parent
    if isinstance(select, exp.Count):
        return True
    if any(star.args.values()) or not isinstance(select, exp.Select) or not isinstance(select.parent, exp.Exists):
        return False
    return not any(select.args.get(clause) for clause in _COUNTING_COLUMNS)


def _renames_query(alias: exp.TableAlias) -> bool:
    """The alias renames the result of a query, which names the columns that it reads itself."""
    source = alias.parent
    return isinstance(source, exp.CTE | exp.Subquery) and isinstance(source.this, exp.Query)


def _names_table(identifier: exp.Identifier) -> bool:
    qualifies = isinstance(identifier.parent, exp.Column) and identifier.arg_key != "this"
    return qualifies or isinstance(identifier.parent, exp.Table | exp.TableAlias)


def columns_sought(tree: exp.Expr) -> frozenset[str] | None:
    """Names that include all columns by whose values rows may be skipped; None if rows are skipped for other reasons
    too."""
    if tree.find(*_STOPPING) is not None or any(join.method for join in tree.find_all(exp.Join)):
        return None
    conditions: list[exp.Expr] = [
        where for where in tree.find_all(exp.Where, exp.Qualify) if not isinstance(where.parent, exp.Filter)
    ]
    # A join filters by the values of the other side.
    for join in tree.find_all(exp.Join):
        conditions += [condition for condition in (join.args.get("on"), *(join.args.get("using") or ())) if condition]
    names = (i for condition in conditions for i in condition.find_all(exp.Identifier) if not _names_table(i))
    return frozenset(i.name.lower() for i in names)

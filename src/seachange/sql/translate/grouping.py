"""GROUP BY a primary key: the table's other columns may be selected too, since they depend on the key.

DuckDB wants each of them in the list of groups, where they make no more groups than there are; which they are only the
catalog tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from seachange.model.schema.descriptor import Table
from seachange.sql.text.scope import is_cte_reference
from seachange.storage.plan import quote

# Qualifier and name of a column; a star has no name.
ColumnName = tuple[str, str]
FindTable = Callable[[str | None, str], Table | None]


@dataclass(frozen=True, slots=True)
class Dependent:
    """Columns that are named beside those that are grouped by, in a query of these tables (alias, schema, name)."""

    grouped: frozenset[ColumnName]
    named: tuple[ColumnName, ...]
    tables: tuple[tuple[str, str | None, str], ...]
    # Columns that are grouped by under another name, unless a table has a column of that name.
    aliased: tuple[tuple[str, ColumnName], ...] = ()


def find_dependent(tree: exp.Expr) -> Iterator[tuple[exp.Column, Dependent]]:
    """Each with the column of the list of groups that others go before."""
    for query in list(tree.find_all(exp.Select)):
        group = query.args.get("group")
        if group is None or any(value for key, value in group.args.items() if key != "expressions"):
            continue
        for node in [node for node in group.expressions if isinstance(node, exp.Literal)]:
            placed = _at_place(query, node)
            if placed is not None:
                node.replace(placed)
        columns = [node for node in group.expressions if isinstance(node, exp.Column)]
        grouped = frozenset((column.table, column.name) for column in columns)
        named = tuple(dict.fromkeys(name for name in _named(query) if not _is_grouped(name, grouped)))
        tables = tuple(_tables(query))
        if columns and named and tables:
            yield columns[0], Dependent(grouped, named, tables, tuple(_aliased(query, grouped)))


def _at_place(query: exp.Select, node: exp.Literal) -> exp.Expr | None:
    """The column that GROUP BY names by its place in the result."""
    place = int(node.name) - 1 if node.name.isdigit() and not node.is_string else -1
    if query.is_star or not 0 <= place < len(query.expressions):
        return None
    found = query.expressions[place].unalias()
    return found.copy() if isinstance(found, exp.Column) else None


def _aliased(query: exp.Select, grouped: frozenset[ColumnName]) -> Iterator[tuple[str, ColumnName]]:
    for item in query.expressions:
        if isinstance(item, exp.Alias) and isinstance(item.this, exp.Column) and ("", item.alias) in grouped:
            yield item.alias, (item.this.table, item.this.name)


def _tables(query: exp.Select) -> Iterator[tuple[str, str | None, str]]:
    from_ = query.args.get("from_")
    sources = [from_.this if from_ is not None else None, *(join.this for join in query.args.get("joins") or ())]
    for source in sources:
        is_table = isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier)
        if isinstance(source, exp.Table) and is_table and not is_cte_reference(source):
            yield source.alias_or_name, source.db or None, source.name


def _named(query: exp.Select) -> Iterator[ColumnName]:
    """What stands outside of aggregates."""
    parts = [*query.expressions, query.args.get("having"), query.args.get("order"), query.args.get("distinct")]
    for part in parts:
        if isinstance(part, exp.Expr):
            for node in part.walk(prune=lambda inner: isinstance(inner, exp.AggFunc)):
                if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Column):
                    yield "", ""
                elif isinstance(node, exp.Column):
                    yield node.table, "" if isinstance(node.this, exp.Star) else node.name


def _is_grouped(name: ColumnName, grouped: frozenset[ColumnName]) -> bool:
    return name in grouped or any(name[1] == other[1] and "" in (name[0], other[0]) for other in grouped)


def dependent_text(hole: Dependent, find: FindTable) -> str:
    """The columns that depend on those that are grouped by, as they go before them."""
    found: list[str] = []
    tables = [(alias, find(schema, name)) for alias, schema, name in hole.tables]
    names = {name for _, table in tables if table is not None for name in table.column_by_name}
    grouped = hole.grouped | {column for alias, column in hole.aliased if alias not in names}
    for alias, table in tables:
        if table is not None and _has_key(table, alias, grouped):
            found += [f"{quote(alias)}.{quote(column)}, " for column in _columns(table, alias, hole.named)]
    return "".join(dict.fromkeys(found))


def _has_key(table: Table, alias: str, grouped: frozenset[ColumnName]) -> bool:
    names = {column.id: column.name for column in table.visible_columns}
    key = [names.get(column) for column in table.primary.key]
    return all(name is not None and not grouped.isdisjoint({("", name), (alias, name)}) for name in key)


def _columns(table: Table, alias: str, named: tuple[ColumnName, ...]) -> Iterator[str]:
    for qualifier, name in named:
        if qualifier in ("", alias):
            yield from [name] if name in table.column_by_name else []
            yield from [] if name else [column.name for column in table.visible_columns]

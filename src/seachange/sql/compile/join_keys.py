"""Joins by equal columns: where few rows of one table are found, their values lead to the rows of the other.

**Invariant:** a row of a table that equals none of the rows read of the table that it is linked to contributes to no
result. So of an outer join only the side that may go unmatched is linked, by the condition of the join itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from seachange.model.condition import Among
from seachange.model.scan import Scan
from seachange.model.schema.descriptor import Column, Table
from seachange.sql.compile.seek import conjuncts, has_more
from seachange.values.types import Kind

# The meta entries of a table under which its links are noted, and by which it is known in those of others. A tree is
# copied with them, so they hold no nodes.
LINKS = "links"
PLACE = "place"
# More values than this are not looked up one by one.
VALUES_MAX = 256
# Kinds whose values compare as values of one type.
_ALIKE = (frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT}), frozenset({Kind.TEXT, Kind.VARCHAR}))


@dataclass(frozen=True, slots=True)
class Link:
    """A column is equal to one of another table, which is the reference of that number."""

    column: str
    number: int
    other: str


# A link to the place of another table, which has no number yet.
NotedLink = tuple[str, int, str]


def note_links(tree: exp.Expr) -> exp.Expr:
    """Notes at each table in a FROM clause which of its columns equal columns of other tables there."""
    for place, table in enumerate(tree.find_all(exp.Table)):
        table.meta[PLACE] = place
    for select in tree.find_all(exp.Select):
        _note(select)
    return tree


def _note(select: exp.Select) -> None:
    from_, joins = select.args.get("from_"), select.args.get("joins") or []
    if from_ is None or any(join.method or join.kind in ("SEMI", "ANTI") for join in joins):
        return
    sources = [from_.this, *(join.this for join in joins)]
    names = [source.alias_or_name.lower() for source in sources]
    tables = {
        name: source
        for source, name in zip(sources, names, strict=True)
        if isinstance(source, exp.Table) and names.count(name) == 1 and not has_more(source)
    }
    for name, column, other, other_column in _links(select, joins):
        if name in tables and other in tables and name != other:
            noted: list[NotedLink] = tables[name].meta.setdefault(LINKS, [])
            noted.append((column, tables[other].meta[PLACE], other_column))


def _links(select: exp.Select, joins: Sequence[exp.Join]) -> Iterator[tuple[str, str, str, str]]:
    """A table with its column, and the table and column that this equals in every row of the result."""
    if not any(join.side for join in joins):
        where = select.args.get("where")
        for condition in [where.this if where is not None else None, *(join.args.get("on") for join in joins)]:
            yield from _both_ways(condition)
        return
    for join in joins:
        if join.side in ("", "LEFT") and join.kind in ("", "INNER", "OUTER"):
            name = join.this.alias_or_name.lower()
            yield from (link for link in _both_ways(join.args.get("on")) if link[0] == name)


def _both_ways(condition: exp.Expr | None) -> Iterator[tuple[str, str, str, str]]:
    for term in conjuncts(condition) if condition is not None else ():
        if isinstance(term, exp.EQ) and _is_column(term.this) and _is_column(term.expression):
            one, other = term.this, term.expression
            names = (one.table.lower(), one.name, other.table.lower(), other.name)
            yield names
            yield (*names[2:], *names[:2])


def _is_column(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier) and bool(node.table)


def follow_links(links: Iterable[Link], table: Table, known: dict[int, tuple[Table, Scan]]) -> list[Among]:
    """Conditions made of the rows that were found of other tables."""
    found = []
    for link in links:
        other, scan = known.get(link.number, (None, None))
        column = table.column_by_name.get(link.column)
        if other is None or scan is None or scan.found is None or column is None:
            continue
        source = other.column_by_name.get(link.other)
        if source is not None and source.name in scan.found and _are_alike(column, source):
            values = dict.fromkeys(value for value in scan.found[source.name] if value is not None)
            if len(values) <= VALUES_MAX:
                found.append(Among(column.id, tuple(values)))
    return found


def _are_alike(one: Column, other: Column) -> bool:
    if one.type.kind is other.type.kind:
        # A NaN is one value, but not for Python.
        return one.type == other.type and one.type.kind not in (Kind.REAL, Kind.DOUBLE)
    return any(one.type.kind in kinds and other.type.kind in kinds for kinds in _ALIKE)

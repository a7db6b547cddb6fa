"""Join keys: where a join finds few rows of one table, their values are used to look up the rows of the other.

**Invariant:** a row of a table that equals none of the rows read of the linked table contributes to no result. So in an
outer join only the nullable side is linked, by the join's own condition.
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

# Keys of a table's `meta`: its links, and the place by which other links refer to it. They hold no nodes, since trees
# are copied with their meta.
LINKS = "links"
PLACE = "place"
# Larger value lists are not looked up one by one.
VALUES_MAX = 256
# Kinds whose values compare as if they had one type.
_ALIKE = (frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT}), frozenset({Kind.TEXT, Kind.VARCHAR}))


@dataclass(frozen=True, slots=True)
class Link:
    """A column equals a column of another table, the reference with that number."""

    column: str
    number: int
    other: str


# A link to the place of another table, which has no number yet.
NotedLink = tuple[str, int, str]


def note_links(tree: exp.Expr) -> exp.Expr:
    """Records, for each table in a FROM clause, which of its columns equal columns of other tables there."""
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
    """A table and its column, with the table and column that it equals in every row of the result."""
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
    """Conditions made from the rows that were found in other tables."""
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
        # NaN equals itself in SQL, but not in Python.
        return one.type == other.type and one.type.kind not in (Kind.REAL, Kind.DOUBLE)
    return any(one.type.kind in kinds and other.type.kind in kinds for kinds in _ALIKE)

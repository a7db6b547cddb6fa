"""Where the text of a view names relations and their columns.

**Invariant:** what is found depends on the text and on the names as they were when the view was created, not on the
names that relations and columns have now.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from sqlglot import exp

from seachange.sql.bind.binder import bind_node
from seachange.sql.bind.expressions import Expressions
from seachange.sql.bind.output_names import output_name, output_names
from seachange.sql.bind.query import Binding, bind_tree
from seachange.sql.bind.scope import BoundColumn, Columns, NameScope
from seachange.sql.bind.types import BoundType
from seachange.sql.text.scope import is_cte_reference
from seachange.sql.text.tokens import split_script
from seachange.sql.text.tree import fold_names, parse_tree

# The schema as written ("" without one), and the name.
RelationPlace: TypeAlias = tuple[str, str]
# A relation with the names of the columns that a view uses of it.
KnownNames: TypeAlias = tuple[RelationPlace, tuple[str, ...]]
Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Mention:
    """A relation in FROM."""

    relation: RelationPlace
    span: Span
    has_alias: bool


@dataclass(frozen=True, slots=True)
class NamedColumn:
    """A column of a relation, by the place of its own name. `source`: the name that its relation has in the query.
    `names_output`: it is an item of a select list, which is named after it."""

    relation: RelationPlace
    column: str
    span: Span
    source: str
    is_qualified: bool
    names_output: bool


@dataclass(frozen=True, slots=True)
class OutputItem:
    """An item of the select list of the view. `name_span` is the place of its alias; where it has none, `end` is the
    place for one, if it is known."""

    name: str | None
    name_span: Span | None
    end: int | None


@dataclass(frozen=True, slots=True)
class ViewNames:
    """`derived` are names of other results than columns that follow from those of columns. `is_matched`: columns
    are matched or shown without being named one by one; `is_open`: also those that are added later."""

    mentions: tuple[Mention, ...]
    references: tuple[NamedColumn, ...]
    items: tuple[OutputItem, ...]
    output: tuple[str, ...] | None
    derived: frozenset[str]
    is_matched: bool
    is_open: bool


@lru_cache(maxsize=256)
def find_names(text: str, relations: tuple[KnownNames, ...]) -> ViewNames:
    (raw,) = split_script(text)
    tree = fold_names(parse_tree(raw))
    catalog = _Names(relations)
    seen: list[tuple[exp.Column, NameScope]] = []

    def note(found: Expressions, node: exp.Expr, scope: NameScope) -> BoundType | None:
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier):
            seen.append((node, scope))
        return bind_node(found, node, scope)

    binding = bind_tree(tree, catalog, bind=note)
    references = tuple(dict.fromkeys(found for each in seen for found in catalog.references(*each)))
    return ViewNames(
        tuple(sorted(_mentions(tree), key=lambda mention: mention.span)),
        references,
        tuple(_items(tree)),
        _output(tree, binding),
        frozenset(_derived(tree)),
        _is_matched(tree, binding),
        _is_open(tree, binding),
    )


class _Names:
    """Columns of relations, without types. All mentions of a relation get the same list, and nothing else does: by it a
    source is known to be the relation itself."""

    def __init__(self, relations: Sequence[KnownNames]) -> None:
        self._columns = {place: [BoundColumn(name, None) for name in names] for place, names in relations}
        self._places = {id(columns): place for place, columns in self._columns.items()}

    def columns(self, schema: str | None, name: str) -> Columns:
        return self._columns.get((schema or "", name))

    def user_type(self, schema: str | None, name: str) -> BoundType | None:
        return None

    def enum_name(self, number: int) -> str:
        return str(number)

    def references(self, node: exp.Column, scope: NameScope) -> Iterator[NamedColumn]:
        found = scope.find_place(node.table, node.name)
        place = self._places.get(id(found[0].columns)) if found is not None else None
        span = _span(node.this)
        if found is not None and place is not None and span is not None:
            names_output = isinstance(node.parent, exp.Select) and node.arg_key == "expressions"
            yield NamedColumn(place, node.name, span, found[0].name, bool(node.table), names_output)


def _mentions(tree: exp.Expr) -> Iterator[Mention]:
    for table in tree.find_all(exp.Table):
        name, schema = table.this, table.args.get("db")
        if not isinstance(name, exp.Identifier) or is_cte_reference(table) or name.meta_get("start") is None:
            continue
        start = (schema or name).meta["start"]
        span = (start, name.meta["end"] + 1)
        yield Mention((table.db, table.name), span, table.args.get("alias") is not None)


def _span(node: exp.Expr | None) -> Span | None:
    return (
        (node.meta["start"], node.meta["end"] + 1) if node is not None and node.meta_get("start") is not None else None
    )


def _items(tree: exp.Expr) -> Iterator[OutputItem]:
    query: exp.Expr = tree
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    for item in query.expressions if isinstance(query, exp.Select) else ():
        alias = item.args.get("alias") if isinstance(item, exp.Alias) else None
        name = item.this if isinstance(item, exp.Column) and isinstance(item.this, exp.Identifier) else item
        span = _span(name) if isinstance(name, exp.Identifier | exp.Literal) else None
        yield OutputItem(output_name(item), _span(alias), span[1] if span is not None else None)


def _output(tree: exp.Expr, binding: Binding) -> tuple[str, ...] | None:
    if binding.columns is not None:
        return tuple(column.name for column in binding.columns)
    names = output_names(tree)
    return None if names is None or None in names else tuple(str(name) for name in names)


def _derived(tree: exp.Expr) -> Iterator[str]:
    for select in tree.find_all(exp.Select):
        for item in select.expressions:
            name = output_name(item) if not isinstance(item, exp.Alias | exp.Column | exp.Subquery) else None
            if name is not None:
                yield name


def _is_matched(tree: exp.Expr, binding: Binding) -> bool:
    aliases = (table.args.get("alias") for table in tree.find_all(exp.Table))
    is_aliased = any(isinstance(alias, exp.TableAlias) and alias.columns for alias in aliases)
    return _is_open(tree, binding) or is_aliased or any(join.args.get("using") for join in tree.find_all(exp.Join))


def _is_open(tree: exp.Expr, binding: Binding) -> bool:
    if binding.found.stars or binding.found.rows:
        return True
    return any(join.method == "NATURAL" for join in tree.find_all(exp.Join))

"""CREATE VIEW and ALTER VIEW."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from seachange import errors
from seachange.model.object_kind import ObjectKind
from seachange.model.relation import RelationName
from seachange.model.schema.temporary import OWN_SCHEMA
from seachange.model.statements import (
    ChangeOwner,
    CreateMaterializedView,
    CreateTemporary,
    CreateView,
    MoveObject,
    RefreshView,
    RenameObject,
)
from seachange.sql.ddl.object import take_change, take_data_clause
from seachange.sql.duck.sequence_calls import plain_names
from seachange.sql.text.names import read_relation
from seachange.sql.text.scope import is_cte_reference
from seachange.sql.text.sequence_names import sequences_named
from seachange.sql.text.tokens import Reader, split_script
from seachange.sql.text.tree import fold_names, parse_tree
from seachange.sql.translate.guard import check_tree

_QUERY_WORDS = ("select", "with", "values", "table")


def read_create_view(reader: Reader) -> CreateView:
    return _read_create(reader, or_replace=False)


def read_replace_view(reader: Reader) -> CreateView:
    return _read_create(reader, or_replace=True)


def read_temporary_view(reader: Reader) -> CreateTemporary:
    return _as_temporary(read_create_view(reader))


def read_temporary_replacement(reader: Reader) -> CreateTemporary:
    return _as_temporary(read_replace_view(reader))


def _as_temporary(view: CreateView) -> CreateTemporary:
    if view.name.schema not in (None, OWN_SCHEMA):
        detail = "a temporary view cannot be created in another schema"
        raise errors.InvalidTableDefinition(name=view.name, detail=detail)
    return CreateTemporary(replace(view, name=RelationName(OWN_SCHEMA, view.name.name)))


def read_create_materialized(reader: Reader) -> CreateMaterializedView:
    if_not_exists = reader.take("if", "not", "exists")
    name = read_relation(reader)
    columns = reader.names() if reader.at_symbol("(") else ()
    if reader.take("using"):
        # Access methods make no difference here.
        reader.name()
    if reader.at("with"):
        raise errors.FeatureNotSupported(feature="a storage parameter of a materialized view", instead="Leave it out.")
    if reader.take("tablespace"):
        reader.name()
    _expect_query(reader)
    query, with_data = take_data_clause(reader.rest())
    return CreateMaterializedView(_view_of(name, query, columns, or_replace=False), if_not_exists, with_data)


def read_refresh(reader: Reader) -> RefreshView:
    concurrently = reader.take("concurrently")
    name = read_relation(reader)
    with_data = True
    if reader.take("with"):
        with_data = not reader.take("no")
        reader.expect("data")
    if concurrently and not with_data:
        raise errors.SyntaxProblem(detail="CONCURRENTLY and WITH NO DATA options cannot be used together")
    return RefreshView(name, concurrently, with_data)


def _read_create(reader: Reader, or_replace: bool) -> CreateView:
    name = read_relation(reader)
    columns = reader.names() if reader.at_symbol("(") else ()
    if reader.at("with"):
        raise errors.FeatureNotSupported(feature="an option of a view", instead="Leave it out.")
    _expect_query(reader)
    return _view_of(name, reader.rest(), columns, or_replace)


def _expect_query(reader: Reader) -> None:
    reader.expect("as")
    if reader.ends_with("check", "option"):
        raise errors.FeatureNotSupported(feature="WITH CHECK OPTION", instead="Omit it: views are read-only.")
    if not reader.at_symbol("(") and not any(reader.at(word) for word in _QUERY_WORDS):
        raise reader.problem()


def _view_of(name: RelationName, query: str, columns: tuple[str, ...], or_replace: bool) -> CreateView:
    tree = _parse_query(query)
    return CreateView(name, query, relations_read(tree), columns_used(tree), columns, or_replace, sequences_named(tree))


def _parse_query(query: str) -> exp.Expr:
    (raw,) = split_script(query)
    tree = parse_tree(raw)
    if not isinstance(tree, exp.Query | exp.Values):
        raise errors.SyntaxProblem(detail="a view requires a query")
    if tree.find(exp.Parameter, exp.Placeholder):
        raise errors.SyntaxProblem(detail="a view cannot have parameters")
    check_tree(plain_names(tree))
    return fold_names(tree)


def read_alter_view(reader: Reader, kind: ObjectKind = ObjectKind.VIEW) -> RenameObject | MoveObject | ChangeOwner:
    if_exists = reader.take("if", "exists")
    name = read_relation(reader)
    change = take_change(reader, kind, name, if_exists)
    if change is not None:
        return change
    if any(reader.at(word) for word in ("alter", "rename", "set", "reset")):
        raise errors.FeatureNotSupported(
            feature=f"this form of ALTER {kind.upper()}",
            instead="RENAME TO, SET SCHEMA and OWNER TO are supported.",
        )
    raise reader.problem()


# The relations and columns that a query reads, found without knowing the relations.
# Names in the tree are folded. If a name is ambiguous, all its meanings count: a superfluous dependency is found out
# with the catalog, a missing one is not.
Used = tuple[RelationName | None, str | None]


def relations_read(tree: exp.Expr) -> tuple[RelationName, ...]:
    found = [_relation(table) for table in tree.find_all(exp.Table, bfs=False)]
    return tuple(dict.fromkeys(relation for relation in found if relation is not None))


def columns_used(tree: exp.Expr) -> tuple[Used, ...]:
    used: dict[Used, None] = {}
    for node in tree.find_all(exp.Column, exp.Star, exp.Join, exp.Table, bfs=False):
        used.update(dict.fromkeys(_used_by(node)))
    return tuple(used)


def _used_by(node: exp.Expr) -> Iterator[Used]:
    match node:
        case exp.Column():
            yield from _used_by_column(node)
        case exp.Star() if isinstance(node.parent, exp.Select):
            yield from _stars(node.parent)
        case exp.Join() if isinstance(node.parent, exp.Select):
            # The columns of a natural join are known only to the catalog.
            if node.method:
                yield from _stars(node.parent)
            yield from ((None, name.name) for name in node.args.get("using") or ())
        case exp.Table() if _is_renamed(node):
            yield (_relation(node), None)


def _used_by_column(column: exp.Column) -> Iterator[Used]:
    name = None if isinstance(column.this, exp.Star) else column.name
    scopes = list(_scopes(column))
    if column.table:
        source = next((s for scope in scopes for s in _sources(scope) if s.alias_or_name == column.table), None)
        if source is None:
            yield (None, name)
        elif _relation(source) is not None and not _is_renamed(source):
            yield (_relation(source), name)
        return
    sources = [source for scope in scopes for source in _sources(scope)]
    # A table used as a value is all of its columns.
    rows = [source for source in sources if _is_row(source, column)]
    yield from ((_relation(source), None) for source in rows)
    if len(sources) != 1 or rows or _is_renamed(sources[0]) or _names_output(scopes[-1], column):
        yield (None, name)
    elif _relation(sources[0]) is not None:
        yield (_relation(sources[0]), name)


def _relation(source: exp.Expr | None) -> RelationName | None:
    """None for anything but a relation of the catalog: a subquery, a WITH query, a function."""
    if not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier) or is_cte_reference(source):
        return None
    return RelationName(source.db or None, source.name)


def _is_renamed(source: exp.Expr | None) -> bool:
    """Whether its columns are renamed here, by position."""
    alias = source.args.get("alias") if source is not None and _relation(source) is not None else None
    return isinstance(alias, exp.TableAlias) and bool(alias.columns)


def _is_row(source: exp.Expr, column: exp.Column) -> bool:
    return source.alias_or_name == column.name and _relation(source) is not None


def _names_output(select: exp.Select, column: exp.Column) -> bool:
    """ORDER BY and GROUP BY may refer to a result column."""
    return any(isinstance(e, exp.Alias) and e.alias == column.name for e in select.expressions)


def _stars(select: exp.Select) -> Iterator[Used]:
    yield from ((_relation(source), None) for source in _sources(select) if _relation(source) is not None)


def _scopes(node: exp.Expr) -> Iterator[exp.Select]:
    """The queries whose tables an expression sees, innermost first."""
    below, above = node, node.parent
    while above is not None:
        if isinstance(above, exp.Select):
            yield above
        # A derived table does not see the tables next to it, nor does a WITH query.
        if isinstance(above, exp.CTE) or (_is_query(below) and isinstance(above, exp.From | exp.Join)):
            return
        below, above = above, above.parent


def _is_query(source: exp.Expr) -> bool:
    """As opposed to joins in parentheses."""
    return isinstance(source, exp.Subquery) and isinstance(source.this, exp.Query | exp.Values)


def _sources(select: exp.Select) -> Iterator[exp.Expr]:
    from_ = select.args.get("from_")
    pending: list[exp.Expr] = [from_.this] if from_ is not None else []
    pending += select.args.get("laterals") or ()
    pending += [join.this for join in select.args.get("joins") or ()]
    while pending:
        source = pending.pop(0)
        pending += [join.this for join in source.args.get("joins") or ()]
        if isinstance(source, exp.Paren | exp.Subquery) and not _is_query(source):
            pending.append(source.this)
        else:
            yield source

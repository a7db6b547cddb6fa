"""Views in queries: a view is replaced by its query.

**Invariant:** the text of a view sees what it saw when the view was created: the same relations and columns, by id,
under the names that they had. Renames, another search path and added columns change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from sqlglot import exp

from seachange import errors
from seachange.model.ids import DescriptorId
from seachange.model.relation import RelationName
from seachange.model.scan import Scan
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Sequence as SequenceObject
from seachange.model.schema.objects import View
from seachange.model.schema.temporary import OWN_SCHEMA, is_temporary
from seachange.sql.bind.output_names import apply_names, output_names
from seachange.sql.bind.query import bind_tree
from seachange.sql.bind.scope import BoundColumn
from seachange.sql.compile.bound_catalog import KnownRelations, relation_columns
from seachange.sql.compile.template import TableReference, Template, compile_template
from seachange.sql.compile.type_holes import UserCast, bind_types
from seachange.sql.duck.cursor import DuckQuery, DuckSession
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import column_type
from seachange.sql.query.result_columns import fitting_type
from seachange.sql.text.sequence_names import rename_sequences
from seachange.sql.text.tokens import split_script
from seachange.sql.text.tree import fold_names, parse_tree
from seachange.sql.translate.grouping import Dependent, dependent_text
from seachange.storage.plan import quote
from seachange.values.types import TEXT, SqlType

_Relations = tuple[tuple[str | None, str, tuple[BoundColumn, ...] | None], ...]


@lru_cache(maxsize=512)
def _template(query: str, relations: _Relations = ()) -> Template:
    """`relations` are those that it reads, with their columns."""
    (raw,) = split_script(query)
    tree = parse_tree(raw)
    found = {(schema, name): columns for schema, name, columns in relations}
    return compile_template(
        _select_values(tree) if isinstance(tree, exp.Values) else tree, catalog=KnownRelations(found)
    )


def _relations(view: View, port: TransactionPort) -> _Relations:
    found = []
    for (schema, name), id_ in _ids_of(view).items():
        table = _as_known(view, port.schema.table_by_id(id_))
        columns = relation_columns(table or port.schema.object_by_id(id_))
        # Without their origins: the template is the same for all versions of the table with these columns.
        known = tuple(replace(column, origin=None) for column in columns) if columns is not None else None
        found.append((schema, name, known))
    return tuple(found)


def _select_values(tree: exp.Values) -> exp.Select:
    names = [exp.to_identifier(str(name)) for name in output_names(tree) or ()]
    tree.set("alias", exp.TableAlias(this=exp.to_identifier("values", quoted=True), columns=names))
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=tree))


def bind_view(view: View, port: TransactionPort) -> DuckQuery:
    """The rows of a view, under the names of its columns. Its relations are read with the privileges of its owner."""
    port.rights.check_access(view, "SELECT")
    with port.rights.acting_as(port.rights.access_of(view).owner):
        query = _bind(view, port)
    if not view.columns:
        return query
    names = ", ".join(quote(name) for name in view.columns)
    return replace(query, sql=f"SELECT * FROM ({query.sql}) AS view_rows({names})")  # noqa: S608 - generated


def bind_rows(view: View, port: TransactionPort) -> DuckQuery:
    """The rows of its query, without a check of rights on the view itself."""
    return _bind(view, port)


def _bind(view: View, port: TransactionPort) -> DuckQuery:
    template = _template(_current_query(view, port), _relations(view, port))
    sources = {reference: _bind_source(view, reference, port) for reference in template.tables}
    parameters = {name: value for source in sources.values() for name, value in source.parameters.items()}
    relations = {name: table for source in sources.values() for name, table in source.relations.items()}
    known = {name for source in sources.values() for name in source.session_values}
    return DuckQuery(
        template.fill([sources[reference].sql for reference in template.tables], _bind_types(view, template, port)),
        parameters,
        relations,
        tuple(sorted(known | set(template.session_values))),
    )


def _current_query(view: View, port: TransactionPort) -> str:
    """Its text with the current names of sequences, which are found when the query runs."""
    names = {}
    for schema, name, id_ in view.names:
        sequence = port.schema.object_by_id(id_)
        if isinstance(sequence, SequenceObject):
            names[RelationName(schema or None, name)] = f"{quote(sequence.schema)}.{quote(sequence.name)}"
    return rename_sequences(view.query, names) if names else view.query


def _bind_types(view: View, template: Template, port: TransactionPort) -> list[str] | None:
    if any(isinstance(hole, UserCast) and isinstance(hole.name, RelationName) for hole in template.types):
        raise errors.FeatureNotSupported(
            feature="a cast to an enum type in a view",
            instead="Omit the cast where a label is compared with a column, or cast the column to text.",
        )
    ids = _ids_of(view)
    return bind_types(
        template.types, port, lambda schema, name: _as_known(view, port.schema.table_by_id(ids[schema, name]))
    )


def _ids_of(view: View) -> dict[tuple[str | None, str], DescriptorId]:
    """The relations that the view reads, by their names in its text."""
    found = {(schema or None, name): id_ for schema, name, id_ in view.names}
    # Its text has the session's own name of the schema.
    return found | {(OWN_SCHEMA, name): id_ for schema, name, id_ in view.names if is_temporary(schema)}


def _as_known(view: View, table: Table | None) -> Table | None:
    """The table with the names that its columns had when the view was created."""
    if table is None:
        return None
    pairs = zip(view.column_uses, view.column_names, strict=True)
    names = {column: name for (id_, column), name in pairs if id_ == table.id}
    return replace(table, columns=tuple(replace(c, name=names.get(c.id, c.name)) for c in table.columns))


def check_grouping(before: Table, after: Table, views: Iterable[View]) -> None:
    """Rejects dropping a primary key by which a view groups: the view may name other columns of the table, which depend
    on the key."""
    if before.primary.key == after.primary.key:
        return
    for view in views:
        places = [place for place, id_ in _ids_of(view).items() if id_ == before.id]
        for hole in _template(view.query).types if places else ():
            if isinstance(hole, Dependent) and _dependent(view, hole, before) != _dependent(view, hole, after):
                raise errors.FeatureNotSupported(
                    feature=f"another primary key for table {after.name}, or none, by which view {view.name} groups,",
                    instead="Create the view again with all of its columns in GROUP BY, then change the key.",
                )


def _dependent(view: View, hole: Dependent, table: Table) -> str:
    ids = _ids_of(view)
    return dependent_text(hole, lambda schema, name: _as_known(view, table) if ids[schema, name] == table.id else None)


def _bind_source(view: View, reference: TableReference, port: TransactionPort) -> DuckQuery:
    id_ = _ids_of(view)[reference.schema, reference.name]
    table = port.schema.table_by_id(id_)
    if table is not None:
        port.rights.check_access(table, "SELECT")
        scan = _scan(view, table, port)
        return DuckQuery(scan.sql, scan.parameters, scan.relations)
    inner = port.schema.object_by_id(id_)
    if not isinstance(inner, View):
        raise errors.Bug(detail=f"view {view.name} reads relation {id_}, which does not exist")
    return bind_view(inner, port)


def _scan(view: View, table: Table, port: TransactionPort) -> Scan:
    """The columns that the view uses, under the names in its text."""
    pairs = zip(view.column_uses, view.column_names, strict=True)
    names = {column: name for (id_, column), name in pairs if id_ == table.id}
    # In the order of the table: the text may give them names by their places.
    used = [(column, names[column.id]) for column in table.columns if column.id in names]
    scan = port.reads.scan(table, columns=frozenset(column.name.lower() for column, _ in used))
    shown = ", ".join(f"{quote(column.name)} AS {quote(name)}" for column, name in used) or "*"
    return replace(scan, sql=f"SELECT {shown} FROM ({scan.sql})")  # noqa: S608 - quoted


def resolve_view(before: View | None, after: View, port: TransactionPort, duck: DuckSession) -> View:
    """Has DuckDB bind the query of a new view, and returns the view with the names of its columns."""
    if before is not None and (before.query, before.columns) == (after.query, after.columns):
        return after
    with port.rights.describing():
        query = _bind(after, port)
    names, found_types = duck.describe(query)
    found = [*after.columns, *apply_names(_template(after.query).names, names)[len(after.columns) :]]
    if len(found) > len(names):
        raise errors.SyntaxProblem(detail="CREATE VIEW specifies more column names than columns")
    _check_distinct(found)
    if before is not None and tuple(found[: len(before.columns)]) != before.columns:
        raise errors.InvalidTableDefinition(name=after.name, detail="columns of a view keep their names and order")
    return replace(after, columns=tuple(found), types=_types(after, port, found_types))


def _types(view: View, port: TransactionPort, found: Sequence[str]) -> tuple[SqlType, ...]:
    (raw,) = split_script(view.query)
    known = {(schema, name): columns for schema, name, columns in _relations(view, port)}
    columns = bind_tree(fold_names(parse_tree(raw)), KnownRelations(known)).columns
    if columns is None or len(columns) != len(found):
        return tuple(column_type(name) for name in found)
    types = [fitting_type(column.type, name, column_type(name)) for column, name in zip(columns, found, strict=True)]
    return tuple(type_ or TEXT for type_ in types)


def _check_distinct(names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise errors.DuplicateColumn(name=name)
        seen.add(name)


def add_session_values(query: DuckQuery, views: Iterable[DuckQuery]) -> DuckQuery:
    more = {name for view in views for name in view.session_values}
    return replace(query, session_values=tuple(sorted({*query.session_values, *more}))) if more else query

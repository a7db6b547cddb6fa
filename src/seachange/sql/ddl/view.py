"""CREATE VIEW and ALTER VIEW."""

from __future__ import annotations

from sqlglot import exp

from seachange import errors
from seachange.model.object_kind import ObjectKind
from seachange.model.statements import ChangeOwner, CreateView, MoveObject, RenameObject
from seachange.sql.compile.template import fold_names
from seachange.sql.ddl.object import take_change
from seachange.sql.ddl.view_reads import columns_used, relations_read
from seachange.sql.duck.sequence_calls import plain_names, sequences_named
from seachange.sql.text.names import read_relation
from seachange.sql.text.tokens import Reader, split_script
from seachange.sql.text.tree import parse_tree, take_databases
from seachange.sql.translate.guard import check_tree

_QUERY_WORDS = ("select", "with", "values", "table")


def read_create_view(reader: Reader) -> CreateView:
    return _read_create(reader, or_replace=False)


def read_replace_view(reader: Reader) -> CreateView:
    return _read_create(reader, or_replace=True)


def _read_create(reader: Reader, or_replace: bool) -> CreateView:
    name = read_relation(reader)
    columns = reader.names() if reader.at_symbol("(") else ()
    if reader.at("with"):
        raise errors.FeatureNotSupported(feature="an option of a view", instead="Leave it out.")
    reader.expect("as")
    if reader.ends_with("check", "option"):
        raise errors.FeatureNotSupported(feature="WITH CHECK OPTION", instead="Omit it: views are read-only.")
    if not reader.at_symbol("(") and not any(reader.at(word) for word in _QUERY_WORDS):
        raise reader.problem()
    query = reader.rest()
    tree = _parse_query(query)
    return CreateView(name, query, relations_read(tree), columns_used(tree), columns, or_replace, sequences_named(tree))


def _parse_query(query: str) -> exp.Expr:
    (raw,) = split_script(query)
    tree = parse_tree(raw)
    if not isinstance(tree, exp.Query | exp.Values):
        raise errors.SyntaxProblem(detail="a view requires a query")
    if tree.find(exp.Parameter, exp.Placeholder):
        raise errors.SyntaxProblem(detail="a view cannot have parameters")
    if take_databases(tree):
        raise errors.FeatureNotSupported(feature="the name of a database in a view", instead="Leave it out.")
    check_tree(plain_names(tree))
    return fold_names(tree)


def read_alter_view(reader: Reader) -> RenameObject | MoveObject | ChangeOwner:
    if_exists = reader.take("if", "exists")
    name = read_relation(reader)
    change = take_change(reader, ObjectKind.VIEW, name, if_exists)
    if change is not None:
        return change
    if any(reader.at(word) for word in ("alter", "rename", "set", "reset")):
        raise errors.FeatureNotSupported(
            feature="this form of ALTER VIEW",
            instead="RENAME TO, SET SCHEMA, OWNER TO and CREATE OR REPLACE VIEW are supported.",
        )
    raise reader.problem()

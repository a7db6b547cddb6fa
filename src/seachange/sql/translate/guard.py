"""The guard: an allow-list check of a user's tree, before anything else reads it, and a second check of the generated
DuckDB text, in case a generator passed through part of a name or a unit.

**Invariant:** no tree that passes can reach a file, a setting, the environment or a table that is not the catalog's.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from seachange import errors
from seachange.model.relation import RelationName
from seachange.runtime.interruption import each
from seachange.sql.bind.names import function_name, postgres_name
from seachange.sql.bind.postgres import functions
from seachange.sql.text.names import refuse_type
from seachange.sql.translate.functions import (
    FUNCTIONS,
    REFUSED_PREFIXES,
    SEQUENCE_FUNCTIONS,
    STRUCTURE,
    TABLE_FUNCTIONS,
    TYPES,
    VARIADIC,
)

# Bare words (units, fields, keywords) are generated as they are: they must be words.
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# DuckDB takes a table name that looks like a path for a file, should a WITH query of that name be out of its sight.
_PATH_LIKE = re.compile(r"[./\\:*?]")
_DUCKDB = DuckDB()
# What a frame may leave out.
_EXCLUSIONS = frozenset({"CURRENT ROW", "GROUP", "TIES", "NO OTHERS"})
# Marks places in generated text, so it may not come out of an escape.
_NUL = "\x00"

# With WITHIN GROUP, the rank of a row that is not in the table.
_HYPOTHETICAL = (exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist)

# Refused arguments of constructs that are otherwise allowed, with the name of the feature.
_REFUSED_ARGS: dict[type[exp.Expr], dict[str, str]] = {
    exp.Select: {
        "into": "SELECT INTO",
        "locks": "FOR UPDATE / SHARE",
        "hint": "a hint",
        "kind": "SELECT AS STRUCT",
        "sample": "TABLESAMPLE",
        "connect": "CONNECT BY",
        "match": "MATCH_RECOGNIZE",
    },
    exp.Table: {
        "pivots": "PIVOT",
        "version": "AT (VERSION ...)",
        "when": "a historical table",
        "changes": "CHANGES",
        "format": "a file format",
        "pattern": "a file pattern",
        "hints": "a hint",
    },
    exp.LimitOptions: {"percent": "FETCH ... PERCENT"},
    exp.Subquery: {"pivots": "PIVOT", "sample": "TABLESAMPLE"},
}
# Types whose values are object ids and are printed as names.
REGISTERED_TYPES: Final = frozenset({"regclass", "regtype", "regnamespace", "regrole"})

_NAMES: Final = """
    regclassin regclassout regtypein regtypeout regnamespacein regnamespaceout regrolein regroleout to_regclass
    to_regtype to_regnamespace to_regrole to_regclass_name to_regtype_name to_regnamespace_name to_regrole_name
    pg_get_indexdef pg_get_constraintdef pg_get_viewdef format_type pg_typeof
    obj_description col_description shobj_description pg_get_serial_sequence pg_get_userbyid pg_table_is_visible
    pg_type_is_visible pg_function_is_visible pg_opclass_is_visible pg_opfamily_is_visible pg_operator_is_visible
    pg_collation_is_visible pg_conversion_is_visible pg_statistics_obj_is_visible pg_ts_config_is_visible
    acldefault current_schemas current_setting set_config pg_backend_pid pg_is_in_recovery pg_encoding_to_char
    pg_char_to_encoding getdatabaseencoding pg_client_encoding inet_server_addr inet_server_port inet_client_addr
    inet_client_port pg_relation_size pg_table_size pg_total_relation_size pg_indexes_size pg_database_size
    pg_size_pretty pg_tablespace_location pg_relation_is_publishable pg_relation_filenode pg_get_triggerdef
    pg_get_ruledef pg_get_partkeydef pg_get_functiondef pg_get_function_result pg_get_function_arguments
    pg_get_function_identity_arguments pg_get_statisticsobjdef_columns has_table_privilege has_any_column_privilege
    has_schema_privilege has_database_privilege has_sequence_privilege has_type_privilege has_function_privilege
    has_column_privilege pg_has_role pg_get_expr _pg_expandarray generate_subscripts oidin array_upper
    quote_ident quote_literal quote_nullable pg_partition_ancestors pg_sleep pg_blocking_pids pg_cancel_backend
    pg_terminate_backend pg_is_other_temp_schema pg_my_temp_schema
    pg_sequence_last_value pg_ts_dict_is_visible pg_ts_parser_is_visible pg_ts_template_is_visible
"""
CATALOG_FUNCTIONS: Final[frozenset[str]] = frozenset(_NAMES.split())


# Of these, the most frequent ones, only the text is checked.
_HARMLESS: Final = frozenset({exp.Column, exp.Literal, exp.EQ, exp.Or, exp.Paren, exp.Null, exp.Boolean})


def check_tree(tree: exp.Expr) -> None:
    for node in each(tree.walk()):
        _check_node(node)


def text_of(node: exp.Expr) -> str:
    """The text that a node of its own holds, as it will be generated: with its escapes resolved."""
    text = node.args.get("this")
    if isinstance(node, exp.UnicodeString):
        try:
            return node.sql("duckdb")
        except (ValueError, OverflowError):
            raise errors.UnpairedSurrogate() from None
    return text if isinstance(text, str) else ""


def _check_node(node: exp.Expr) -> None:
    if _NUL in text_of(node):
        raise errors.CharacterNotInRepertoire()
    if type(node) in _HARMLESS:
        return
    if isinstance(node, exp.Func):
        _check_function(node)
    elif not isinstance(node, exp.Condition) and type(node).__name__ not in STRUCTURE:
        raise errors.FeatureNotSupported(feature=f"{type(node).__name__} in a query", instead="")
    if isinstance(node, exp.Placeholder):
        raise errors.SyntaxProblem(detail=f'at or near "{node.sql()}"')
    if isinstance(node, exp.Parameter) and not _is_numbered(node):
        raise errors.SyntaxProblem(detail=f'at or near "{node.sql()}"')
    if isinstance(node, exp.BitString | exp.HexString):
        # DuckDB takes them for a number and for bytes.
        raise errors.FeatureNotSupported(feature="a string of bits", instead="Write bytes as '\\x1F'::bytea.")
    if isinstance(node, exp.SessionParameter | exp.Pseudocolumn):
        raise errors.SyntaxProblem(detail=f'at or near "{node.sql()}"')
    if isinstance(node, exp.Table | exp.Lateral):
        _check_source(node)
    if isinstance(node, exp.Identifier) and not node.name:
        raise errors.SyntaxProblem(detail="an empty name")
    if isinstance(node, exp.Variadic):
        _check_variadic(node)
    if isinstance(node, exp.WithinGroup) and isinstance(node.this, _HYPOTHETICAL):
        instead = "Count the rows that sort before the value: count(*) FILTER (WHERE ...)."
        feature = f"the hypothetical-set aggregate {function_name(node.this)}"
        raise errors.FeatureNotSupported(feature=feature, instead=instead)
    if isinstance(node, exp.Var) and node.arg_key == "exclude" and node.name.upper() in _EXCLUSIONS:
        return
    if isinstance(node, exp.Var) and not _WORD.fullmatch(node.name):
        raise errors.SyntaxProblem(detail=f'at or near "{node.name}"')
    if isinstance(node, exp.DataType):
        _check_type(node)
    if isinstance(node, exp.CTE) and _PATH_LIKE.search(node.alias):
        raise errors.FeatureNotSupported(feature=f'"{node.alias}" as the name of a query', instead="")
    for key, feature in _REFUSED_ARGS.get(type(node), {}).items():
        if node.args.get(key):
            raise errors.FeatureNotSupported(feature=feature, instead="")


def check_text(sql: str) -> None:
    """Of generated text: one statement, no comment, no call of a function that reaches out."""
    try:
        tokens = _DUCKDB.tokenize(sql)
    except TokenError:
        raise errors.SyntaxProblem(detail="the statement cannot be translated") from None
    for token, following in each(pairwise([*tokens, None])):
        assert token is not None
        called = following is not None and following.token_type is TokenType.L_PAREN
        if called and token.token_type is not TokenType.STRING and token.text.lower().startswith(REFUSED_PREFIXES):
            raise errors.InsufficientPrivilege(detail=f"function {token.text} may not be called")
        if token.token_type is TokenType.SEMICOLON or token.comments:
            raise errors.SyntaxProblem(detail="the statement cannot be translated")


def _check_type(node: exp.DataType) -> None:
    kind = node.this.value if isinstance(node.this, exp.DType) else str(node.this)
    listed = node.parent if isinstance(node.parent, exp.DataType) and node.parent.is_type(exp.DType.ARRAY) else node
    if kind == exp.DType.USERDEFINED.value and user_type(node) is not None and isinstance(listed.parent, exp.Cast):
        # Looked for where the catalog is known.
        return
    if kind.lower() not in TYPES:
        name = node.args["kind"].name if kind == exp.DType.USERDEFINED.value and node.args.get("kind") else kind
        refuse_type(str(name).lower())
        raise errors.UndefinedObject(kind="type", name=str(name).lower())


def user_type(node: exp.Expr) -> RelationName | None:
    """The name of a type that is none of the built-in ones."""
    match node.args.get("kind"):
        case exp.Identifier() as name:
            return RelationName(None, _folded(name))
        case exp.Dot(this=exp.Identifier() as schema, expression=exp.Identifier() as name):
            return RelationName(_folded(schema), _folded(name))
        case _:
            return None


def _folded(name: exp.Identifier) -> str:
    return str(name.this) if name.quoted else str(name.this).lower()


def _check_function(node: exp.Func) -> None:
    name = function_name(node)
    # A qualified call: only pg_catalog's own functions have a schema here.
    owner = node.parent if isinstance(node.parent, exp.Dot) and node.arg_key == "expression" else None
    if owner is not None and owner.this.name.lower() != "pg_catalog":
        raise errors.InsufficientPrivilege(detail=f"function {owner.sql()} may not be called")
    if name in SEQUENCE_FUNCTIONS or name in CATALOG_FUNCTIONS:
        return
    if name.startswith(REFUSED_PREFIXES):
        raise errors.InsufficientPrivilege(detail=f"function {name} may not be called")
    if name not in FUNCTIONS:
        if postgres_name(node) in functions():
            raise errors.FeatureNotSupported(feature=f"function {postgres_name(node)}", instead="")
        raise errors.UndefinedFunction(detail=f"function {name} does not exist")


def _check_variadic(node: exp.Variadic) -> None:
    called = node.parent
    if not isinstance(called, exp.Func) or function_name(called) not in VARIADIC:
        raise errors.FeatureNotSupported(feature="VARIADIC of this function", instead="")


def _check_source(node: exp.Expr) -> None:
    """Where a table stands: a name, a subquery, or one of few functions, or several of these side by side."""
    source = node.this
    if source is None and node.args.get("rows_from"):
        return
    if isinstance(source, exp.JSONTable | exp.XMLTable):
        raise errors.FeatureNotSupported(feature="JSON_TABLE and XMLTABLE", instead="Use jsonb_array_elements.")
    if isinstance(source, exp.Func) and function_name(source) not in TABLE_FUNCTIONS:
        name = function_name(source)
        raise errors.InsufficientPrivilege(detail=f"function {name} may not be used as a table")
    allowed = (exp.Func, exp.Identifier) if isinstance(node, exp.Table) else (exp.Func, exp.Subquery)
    if not isinstance(source, allowed):
        raise errors.SyntaxProblem(detail=f'at or near "{node.sql()}"')


def _is_numbered(node: exp.Parameter) -> bool:
    return isinstance(node.this, exp.Literal) and not node.this.is_string and node.this.name.isdigit()

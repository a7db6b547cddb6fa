"""Text to statements: session and DDL statements by our own parser, queries and DML by sqlglot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from seachange import errors
from seachange.model.statements import Statement
from seachange.sql.ddl.readers import DDL_READERS, refuse_ddl
from seachange.sql.ddl.table import read_select_into
from seachange.sql.parsing import prepared, transaction_statements, utility
from seachange.sql.parsing.call_statement import read_call
from seachange.sql.parsing.copy_statement import read_copy
from seachange.sql.parsing.feed_statements import read_create_feed, read_drop_feed
from seachange.sql.text.positions import StatementOrigin
from seachange.sql.text.tokens import RawStatement, Reader, TokenKind, split_script
from seachange.sql.text.tree import parse_tree, take_databases


@dataclass(frozen=True, slots=True)
class TreeStatement:
    """A query or DML statement. The tree is shared by all executions of the text: copy it, never change it."""

    text: str
    tree: exp.Expr
    # The database parts of three-part names.
    databases: frozenset[str] = frozenset()

    @property
    def command(self) -> str:
        return _COMMANDS.get(type(self.tree), "SELECT")


Parsed = Statement | TreeStatement

_COMMANDS: dict[type[exp.Expr], str] = {
    exp.Insert: "INSERT",
    exp.Update: "UPDATE",
    exp.Delete: "DELETE",
    exp.Merge: "MERGE",
}
_TREE_WORDS = frozenset({"select", "with", "values", "table", "insert", "update", "delete", "merge"})

_READERS: tuple[tuple[tuple[str, ...], Callable[[Reader], Statement]], ...] = (
    (("begin",), transaction_statements.read_begin),
    (("start",), transaction_statements.read_start),
    (("commit",), transaction_statements.read_commit),
    (("end",), transaction_statements.read_commit),
    (("rollback",), transaction_statements.read_rollback),
    (("abort",), transaction_statements.read_rollback),
    (("savepoint",), transaction_statements.read_savepoint),
    (("release",), transaction_statements.read_release),
    (("set",), transaction_statements.read_set),
    (("show",), transaction_statements.read_show),
    (("reset",), transaction_statements.read_reset),
    (("discard",), prepared.read_discard),
    (("prepare",), prepared.read_prepare),
    (("execute",), prepared.read_execute),
    (("deallocate",), prepared.read_deallocate),
    (("declare",), prepared.read_declare),
    (("fetch",), prepared.read_fetch),
    (("move",), prepared.read_move),
    (("close",), prepared.read_close),
    (("analyze",), utility.read_analyze),
    (("reindex",), utility.read_reindex),
    (("checkpoint",), utility.read_checkpoint),
    (("unlisten",), utility.read_unlisten),
    (("explain",), prepared.read_explain),
    (("copy",), read_copy),
    (("call",), read_call),
    (("vacuum",), utility.read_vacuum),
    (("create", "feed"), read_create_feed),
    (("drop", "feed"), read_drop_feed),
    (("lock",), utility.read_lock),
    (("create", "extension"), utility.read_create_extension),
    (("drop", "extension"), utility.read_drop_extension),
    (("comment", "on", "extension"), utility.read_comment_extension),
    *DDL_READERS,
)

# First words of statements that PostgreSQL or DuckDB supports and Seachange does not, with hints.
_REFUSED: dict[str, str] = {
    **dict.fromkeys(("cluster", "security"), ""),
    **dict.fromkeys(("listen", "notify", "refresh"), ""),
    "do": "Send the statements themselves.",
    **dict.fromkeys(("attach", "detach", "install", "load", "use", "pragma", "export", "import"), ""),
    **dict.fromkeys(("describe", "summarize"), "EXPLAIN works."),
}


def parse_script(script: str) -> tuple[Parsed, ...]:
    return tuple(parsed for parsed, _ in parse_texts(script))


def parse_texts(script: str) -> tuple[tuple[Parsed, str], ...]:
    """Each statement with its own text."""
    return tuple((_parse_located(raw, script, number), raw.text) for number, raw in enumerate(split_script(script)))


def _parse_located(raw: RawStatement, script: str, number: int) -> Parsed:
    try:
        return parse_statement(raw)
    except RecursionError:
        raise errors.StatementTooComplex() from None
    except errors.Error as error:
        StatementOrigin(script, number).locate(error)
        raise


def _tree_statement(raw: RawStatement) -> TreeStatement:
    tree = parse_tree(raw)
    return TreeStatement(raw.text, tree, take_databases(tree))


def parse_statement(raw: RawStatement) -> Parsed:
    reader = Reader(raw.words, raw.text)
    first = reader.plain()
    if first in _TREE_WORDS or first == "(":
        return read_select_into(reader) or _tree_statement(raw)
    query = utility.read_alias(reader)
    if query is not None:
        reader.expect_end()
        (raw,) = split_script(query)
        return _tree_statement(raw)
    for words, read in _READERS:
        if words[0] == first and reader.take(*words):
            statement = read(reader)
            reader.expect_end()
            return statement
    refuse_ddl(reader)
    if first in _REFUSED:
        form = " ".join(word.text.upper() for word in raw.words[:2] if word.kind is TokenKind.WORD)
        raise errors.FeatureNotSupported(feature=form, instead=_REFUSED[first])
    raise reader.problem()

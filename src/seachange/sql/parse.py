"""Text to statements: session and DDL statements by our own parser, queries and DML by sqlglot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from seachange import errors
from seachange.model.statements import Statement
from seachange.sql.ddl.index import read_create_index, read_drop_index
from seachange.sql.ddl.table import read_alter_table, read_create_table, read_drop_table
from seachange.sql.prepared import (
    read_close,
    read_deallocate,
    read_declare,
    read_discard,
    read_execute,
    read_explain,
    read_fetch,
    read_move,
    read_prepare,
)
from seachange.sql.session import (
    read_begin,
    read_commit,
    read_release,
    read_reset,
    read_rollback,
    read_savepoint,
    read_set,
    read_show,
    read_start,
)
from seachange.sql.tokens import DIALECT, RawStatement, Reader, split_script


@dataclass(frozen=True, slots=True)
class TreeStatement:
    """A query or DML statement. The tree is shared by all who run the text: copy it, never change it."""

    text: str
    tree: exp.Expr

    @property
    def command(self) -> str:
        return _COMMANDS.get(type(self.tree), "SELECT")


Parsed = Statement | TreeStatement

_COMMANDS: dict[type[exp.Expr], str] = {
    exp.Insert: "INSERT",
    exp.Update: "UPDATE",
    exp.Delete: "DELETE",
}
_TREE_WORDS = frozenset({"select", "with", "values", "table", "insert", "update", "delete"})

_READERS: tuple[tuple[tuple[str, ...], Callable[[Reader], Statement]], ...] = (
    (("begin",), read_begin),
    (("start",), read_start),
    (("commit",), read_commit),
    (("end",), read_commit),
    (("rollback",), read_rollback),
    (("abort",), read_rollback),
    (("savepoint",), read_savepoint),
    (("release",), read_release),
    (("set",), read_set),
    (("show",), read_show),
    (("reset",), read_reset),
    (("discard",), read_discard),
    (("prepare",), read_prepare),
    (("execute",), read_execute),
    (("deallocate",), read_deallocate),
    (("declare",), read_declare),
    (("fetch",), read_fetch),
    (("move",), read_move),
    (("close",), read_close),
    (("explain",), read_explain),
    (("create", "table"), read_create_table),
    (("drop", "table"), read_drop_table),
    (("alter", "table"), read_alter_table),
    (("create", "index"), lambda reader: read_create_index(reader, unique=False)),
    (("create", "unique", "index"), lambda reader: read_create_index(reader, unique=True)),
    (("drop", "index"), read_drop_index),
)

# First words of statements that PostgreSQL or DuckDB know and that are refused here, with what works instead.
_REFUSED: dict[str, str] = {
    **dict.fromkeys(("alter", "analyze", "checkpoint", "cluster", "comment", "create", "do", "drop"), ""),
    **dict.fromkeys(("grant", "lock", "merge", "reindex", "revoke", "security", "vacuum"), ""),
    **dict.fromkeys(("listen", "notify", "unlisten", "call", "refresh", "reassign"), ""),
    **dict.fromkeys(("attach", "detach", "install", "load", "use", "pragma", "export", "import"), ""),
    **dict.fromkeys(("describe", "summarize"), "EXPLAIN works."),
    "copy": "Use INSERT ... SELECT.",
    "truncate": "Use DELETE FROM.",
}


def parse_script(script: str) -> tuple[Parsed, ...]:
    return tuple(parse_statement(raw) for raw in split_script(script))


def parse_statement(raw: RawStatement) -> Parsed:
    first = raw.words[0].text if raw.words else ""
    if first in _TREE_WORDS or first == "(":
        return TreeStatement(raw.text, _parse_tree(raw))
    reader = Reader(raw.words, raw.text)
    for words, read in _READERS:
        if reader.take(*words):
            statement = read(reader)
            reader.expect_end()
            return statement
    if first in _REFUSED:
        form = " ".join(word.text.upper() for word in raw.words[:2])
        raise errors.FeatureNotSupported(feature=form, instead=_REFUSED[first])
    raise reader.problem()


def _parse_tree(raw: RawStatement) -> exp.Expr:
    # sqlglot knows GLOB as an operator only and would stumble over DuckDB's function before the guard sees it.
    if any(w.text == "glob" and n.text == "(" for w, n in pairwise(raw.words)):
        raise errors.InsufficientPrivilege(detail="function glob may not be called")
    try:
        trees = DIALECT.parser().parse(list(raw.tokens), raw.text)
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        near = first.get("highlight") or first.get("end_context") or ""
        detail = f'at or near "{near}"' if near else "at end of input"
        raise errors.SyntaxProblem(detail=detail) from None
    except SqlglotError as error:
        raise errors.SyntaxProblem(detail=str(error).splitlines()[0]) from None
    if len(trees) != 1 or trees[0] is None:
        raise errors.SyntaxProblem(detail="not a statement")
    return trees[0]

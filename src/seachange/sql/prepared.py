"""PREPARE, EXECUTE, DEALLOCATE, cursors and EXPLAIN: statements about statements, which stay text until they run."""

from __future__ import annotations

from seachange import errors
from seachange.model.statements import (
    CloseCursor,
    Deallocate,
    DeclareCursor,
    Discard,
    ExecutePrepared,
    Explain,
    FetchCursor,
    PrepareStatement,
)
from seachange.model.types import SqlType
from seachange.sql.ddl.names import read_type
from seachange.sql.tokens import Kind, Reader

_DISCARDED = ("all", "plans", "sequences", "temp", "temporary")
_BACKWARDS = ("prior", "first", "last", "absolute", "relative", "backward")


def read_prepare(reader: Reader) -> PrepareStatement:
    name = reader.name()
    types: list[SqlType] = []
    if reader.take_symbol("("):
        types.append(read_type(reader))
        while reader.take_symbol(","):
            types.append(read_type(reader))
        reader.expect_symbol(")")
    reader.expect("as")
    return PrepareStatement(name, tuple(types), reader.rest())


def read_execute(reader: Reader) -> ExecutePrepared:
    name = reader.name()
    if not reader.take_symbol("("):
        return ExecutePrepared(name, "")
    arguments = reader.rest()
    if not arguments.endswith(")") or not arguments[:-1].strip():
        raise errors.SyntaxProblem(detail="at end of input")
    return ExecutePrepared(name, arguments[:-1])


def read_deallocate(reader: Reader) -> Deallocate:
    if reader.peek(1) is not None:
        reader.take("prepare")
    return Deallocate(None if reader.take("all") else reader.name())


def read_declare(reader: Reader) -> DeclareCursor:
    name = reader.name()
    while reader.take_any("binary", "insensitive", "asensitive", "scroll") or reader.take("no", "scroll"):
        pass
    reader.expect("cursor")
    if reader.take("with", "hold"):
        raise errors.FeatureNotSupported(feature="DECLARE CURSOR WITH HOLD", instead="Fetch within the transaction.")
    reader.take("without", "hold")
    reader.expect("for")
    return DeclareCursor(name, reader.rest())


def read_fetch(reader: Reader) -> FetchCursor:
    return _read_fetch(reader, move=False)


def read_move(reader: Reader) -> FetchCursor:
    return _read_fetch(reader, move=True)


def _read_fetch(reader: Reader, move: bool) -> FetchCursor:
    count: int | None = 1
    if reader.peek(1) is not None:
        if reader.take_any(*_BACKWARDS):
            raise errors.CursorScansForward()
        forward = reader.take("forward") or reader.take("next")
        word = reader.peek()
        if reader.take("all"):
            count = None
        elif word is not None and word.kind is Kind.NUMBER:
            count = reader.integer()
        elif not forward and not reader.at("from") and not reader.at("in"):
            raise errors.CursorScansForward() if reader.take_symbol("-") else reader.problem()
        if reader.peek(1) is not None:
            reader.take_any("from", "in")
    return FetchCursor(reader.name(), count, move)


def read_close(reader: Reader) -> CloseCursor:
    return CloseCursor(None if reader.take("all") else reader.name())


def read_discard(reader: Reader) -> Discard:
    what = reader.take_any(*_DISCARDED)
    if what is None:
        raise reader.problem()
    return Discard("temp" if what == "temporary" else what)


def read_explain(reader: Reader) -> Explain:
    analyze = False
    if reader.take_symbol("("):
        while True:
            analyze |= _read_explain_option(reader)
            if not reader.take_symbol(","):
                break
        reader.expect_symbol(")")
    else:
        analyze = reader.take("analyze")
        reader.take("verbose")
    return Explain(reader.rest(), analyze)


def _read_explain_option(reader: Reader) -> bool:
    """Whether it asks for the query to be run; what else there is to say is always said."""
    option = reader.name()
    off = reader.take_any("off", "false") is not None
    if not off and not reader.take_any("on", "true", "text"):
        word = reader.peek()
        if word is not None and word.kind is not Kind.SYMBOL:
            raise errors.FeatureNotSupported(feature=f"EXPLAIN ({option} {word.text})", instead="")
    return option == "analyze" and not off

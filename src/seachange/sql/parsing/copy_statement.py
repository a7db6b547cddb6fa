"""COPY ... FROM STDIN and TO STDOUT; the rows travel separately from the statement's text."""

from __future__ import annotations

from typing import Any

from seachange import errors
from seachange.model.statements import CopyStream
from seachange.sql.text.names import read_list, read_relation
from seachange.sql.text.tokens import Reader, TokenKind

_ON_THE_SERVER = "Use STDIN or STDOUT, or \\copy in psql."
# Options that a binary file does not have.
_OF_TEXTS = frozenset({"header", "delimiter", "null"})
_ENCODINGS = ("utf8", "utf-8", "unicode")


def read_copy(reader: Reader) -> CopyStream:
    if reader.at_symbol("("):
        query, relation, columns = reader.parenthesized(), None, None
        reader.expect("to")
        inward = False
    else:
        query, relation = "", read_relation(reader)
        columns = reader.names() if reader.at_symbol("(") else None
        inward = reader.take("from")
        if not inward:
            reader.expect("to")
    if not reader.take("stdin" if inward else "stdout"):
        raise errors.FeatureNotSupported(feature="COPY of a file or program of the server", instead=_ON_THE_SERVER)
    options = _read_options(reader)
    if options.get("binary") and (unfit := _OF_TEXTS & options.keys()):
        raise errors.SyntaxProblem(detail=f"cannot specify {min(unfit).upper()} in BINARY mode")
    return CopyStream(inward, relation, columns, query, **options)


def _read_options(reader: Reader) -> dict[str, Any]:
    reader.take("with")
    found: dict[str, Any] = {}
    if reader.take_symbol("("):
        for option in read_list(reader, _read_option):
            found |= option
        reader.expect_symbol(")")
        return found
    # The old syntax without parentheses.
    while not reader.at_end:
        found |= _read_old_option(reader)
    return found


def _read_option(reader: Reader) -> dict[str, Any]:
    name = reader.name()
    match name:
        case "format":
            return _format(reader.name() if _is_word(reader) else reader.string())
        case "header":
            word = reader.take_any("true", "false", "on", "off")
            return {"header": word not in ("false", "off")}
        case "delimiter" | "null":
            return {name: reader.string()}
        case "freeze":
            # FREEZE has no effect: rows are not rewritten.
            reader.take_any("true", "false", "on", "off")
            return {}
        case "encoding":
            text = reader.string() if not _is_word(reader) else reader.name()
            if text.lower() not in _ENCODINGS:
                raise errors.InvalidSetting(name="encoding", value=text)
            return {}
        case _:
            raise errors.FeatureNotSupported(feature=f"COPY with the option {name}", instead="")


def _read_old_option(reader: Reader) -> dict[str, Any]:
    word = reader.take_any("csv", "binary", "header", "delimiter", "null")
    match word:
        case "csv" | "binary":
            return _format(word)
        case "header":
            return {"header": True}
        case "delimiter" | "null":
            reader.take("as")
            return {word: reader.string()}
        case _:
            raise reader.problem()


def _format(name: str) -> dict[str, Any]:
    if name not in ("csv", "text", "binary"):
        raise errors.InvalidSetting(name="format", value=name)
    return {"csv": name == "csv", "binary": name == "binary"}


def _is_word(reader: Reader) -> bool:
    word = reader.peek()
    return word is not None and word.kind is TokenKind.WORD

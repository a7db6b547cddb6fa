"""PREPARE, EXECUTE, DEALLOCATE, cursors and EXPLAIN: the inner statement stays text until it runs."""

from __future__ import annotations

from seachange import errors
from seachange.model import statements
from seachange.sql.text.names import read_list, read_type
from seachange.sql.text.tokens import Reader, TokenKind
from seachange.values.types import SqlType

_DISCARDED = ("all", "plans", "sequences", "temp", "temporary")
# The words that may follow DDL in EXPLAIN (DDL, ...).
_DDL_EXPLANATIONS = {
    kind.value: kind for kind in statements.DdlExplanation if kind is not statements.DdlExplanation.STAGES
} | {"shape": statements.DdlExplanation.COST}
_DDL_OPTIONS = "VERBOSE, DEPS, VIZ, COST, EACH, VERIFY and FORMAT"
# How long the model checker looks at a plan.
_VERIFY_S, _VERIFY_S_MAX = 10, 3_600
# FETCH directions that have a keyword of their own.
_STEPS: dict[str, tuple[statements.CursorWay, int]] = {
    "next": (statements.CursorWay.FORWARD, 1),
    "prior": (statements.CursorWay.BACKWARD, 1),
    "first": (statements.CursorWay.ABSOLUTE, 1),
    "last": (statements.CursorWay.ABSOLUTE, -1),
}


def read_prepare(reader: Reader) -> statements.PrepareStatement:
    name = reader.name()
    types: tuple[SqlType, ...] = ()
    if reader.take_symbol("("):
        types = read_list(reader, read_type)
        reader.expect_symbol(")")
    reader.expect("as")
    return statements.PrepareStatement(name, types, reader.rest())


def read_execute(reader: Reader) -> statements.ExecutePrepared:
    name = reader.name()
    if not reader.take_symbol("("):
        return statements.ExecutePrepared(name, "")
    arguments = reader.rest()
    if not arguments.endswith(")") or not arguments[:-1].strip():
        raise errors.SyntaxProblem(detail="at end of input")
    return statements.ExecutePrepared(name, arguments[:-1])


def read_deallocate(reader: Reader) -> statements.Deallocate:
    if reader.peek(1) is not None:
        reader.take("prepare")
    return statements.Deallocate(None if reader.take("all") else reader.name())


def read_declare(reader: Reader) -> statements.DeclareCursor:
    name = reader.name()
    scroll = True
    while True:
        if reader.take("no", "scroll"):
            scroll = False
        elif not reader.take_any("binary", "insensitive", "asensitive", "scroll"):
            break
    reader.expect("cursor")
    hold = reader.take("with", "hold")
    if not hold:
        reader.take("without", "hold")
    reader.expect("for")
    return statements.DeclareCursor(name, reader.rest(), scroll, hold)


def read_fetch(reader: Reader) -> statements.FetchCursor:
    return _read_fetch(reader, move=False)


def read_move(reader: Reader) -> statements.FetchCursor:
    return _read_fetch(reader, move=True)


def _read_fetch(reader: Reader, move: bool) -> statements.FetchCursor:
    way, count = _read_way(reader) if reader.peek(1) is not None else (statements.CursorWay.FORWARD, 1)
    if reader.peek(1) is not None:
        reader.take_any("from", "in")
    return statements.FetchCursor(reader.name(), count, move, way)


def _read_way(reader: Reader) -> tuple[statements.CursorWay, int | None]:
    """The direction and the count; None is to the end."""
    step = reader.take_any(*_STEPS)
    if step is not None:
        return _STEPS[step]
    word = reader.take_any(*statements.CursorWay)
    way = statements.CursorWay(word or statements.CursorWay.FORWARD)
    if way in (statements.CursorWay.ABSOLUTE, statements.CursorWay.RELATIVE):
        return way, _read_signed(reader)
    following = reader.peek()
    if reader.take("all"):
        return way, None
    if following is not None and (following.kind is TokenKind.NUMBER or reader.at_symbol("-")):
        return way, _read_signed(reader)
    if word is None and not reader.at("from") and not reader.at("in"):
        raise reader.problem()
    return way, 1


def _read_signed(reader: Reader) -> int:
    sign = -1 if reader.take_symbol("-") else 1
    return sign * reader.integer()


def read_close(reader: Reader) -> statements.CloseCursor:
    return statements.CloseCursor(None if reader.take("all") else reader.name())


def read_discard(reader: Reader) -> statements.Discard:
    what = reader.take_any(*_DISCARDED)
    if what is None:
        raise reader.problem()
    return statements.Discard("temp" if what == "temporary" else what)


def read_explain(reader: Reader) -> statements.Explain:
    if reader.take_symbol("("):
        options = read_list(reader, _read_explain_option)
        reader.expect_symbol(")")
        asked = {name: value for name, value in options if value is not False}
        if "ddl" in asked:
            return _read_ddl_explanation(reader, asked)
        if asked.get("format") == "json":
            raise errors.FeatureNotSupported(feature="EXPLAIN (format json) of a query", instead="")
        return statements.Explain(reader.rest(), "analyze" in asked)
    analyze = reader.take("analyze")
    reader.take("verbose")
    return statements.Explain(reader.rest(), analyze)


_Option = bool | int | str


def _read_ddl_explanation(reader: Reader, asked: dict[str, _Option]) -> statements.Explain:
    forms = [_DDL_EXPLANATIONS[name] for name in asked if name in _DDL_EXPLANATIONS]
    unknown = asked.keys() - _DDL_EXPLANATIONS.keys() - {"ddl", "each", "verify", "format"}
    if next(iter(asked)) != "ddl" or unknown:
        raise errors.SyntaxProblem(detail=f"EXPLAIN (DDL ...) takes {_DDL_OPTIONS}, or nothing")
    verify, as_json = asked.get("verify"), asked.get("format") == "json"
    if statements.DdlExplanation.PICTURE in forms and not as_json and (len(forms) > 1 or verify is not None):
        raise errors.SyntaxProblem(detail="VIZ makes text for another program: combine it in FORMAT JSON")
    if "each" in asked and (forms or verify is not None):
        raise errors.SyntaxProblem(detail="EACH can be combined with FORMAT only")
    if verify is not None and (isinstance(verify, str) or not 1 <= verify <= _VERIFY_S_MAX):
        raise errors.InvalidParameterValue(detail=f"VERIFY takes a number of seconds from 1 to {_VERIFY_S_MAX}")
    return statements.Explain(
        reader.rest(),
        ddl=forms[0] if forms else statements.DdlExplanation.STAGES,
        more=tuple(forms[1:]),
        verify_s=_VERIFY_S if verify is True else verify,
        as_json=as_json,
        is_each="each" in asked,
    )


def _read_explain_option(reader: Reader) -> tuple[str, _Option]:
    """An option, and whether it is on; unsupported options are accepted when off."""
    option = reader.name()
    word = reader.peek()
    if option == "verify" and word is not None and word.kind is TokenKind.NUMBER:
        return option, reader.integer()
    if option == "format":
        return option, reader.take_any("text", "json") or _refuse_option(reader, option)
    off = reader.take_any("off", "false") is not None
    if not off and not reader.take_any("on", "true", "text"):
        word = reader.peek()
        if word is not None and word.kind is not TokenKind.SYMBOL:
            _refuse_option(reader, option)
    return option, not off


def _refuse_option(reader: Reader, option: str) -> str:
    raise errors.FeatureNotSupported(feature=f"EXPLAIN ({option} {reader.plain()})", instead="")

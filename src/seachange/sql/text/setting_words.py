"""Names and values of settings in SET, RESET, SHOW, ALTER ROLE and ALTER DATABASE."""

from __future__ import annotations

from seachange import errors
from seachange.model.search_path import quote_in_path
from seachange.model.statements import ChangeSettings
from seachange.sql.text.tokens import Reader, TokenKind

# Setting names of several words.
_SPELLINGS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("time", "zone"), "timezone"),
    (("transaction", "isolation", "level"), "transaction_isolation"),
    (("session", "authorization"), "session_authorization"),
    (("names",), "client_encoding"),
)
_WITHOUT_EQUALS = ("timezone", "client_encoding", "role")


def read_setting_name(reader: Reader) -> str:
    for words, name in _SPELLINGS:
        if reader.take(*words):
            return name
    name = reader.name()
    while reader.take_symbol("."):
        name = f"{name}.{reader.name()}"
    return name.lower()


def read_assignment(reader: Reader) -> tuple[str, str | None]:
    """The name of a setting and its value; None for DEFAULT."""
    name = read_setting_name(reader)
    assigned = reader.take("to") or reader.take_symbol("=")
    if not assigned and name not in _WITHOUT_EQUALS:
        raise reader.problem()
    return name, _read_path(reader) if name == "search_path" else read_value(reader)


def read_value(reader: Reader) -> str | None:
    if reader.take("default"):
        reader.expect_end()
        return None
    parts = [_read_word(reader)]
    while not reader.at_end:
        separator = ", " if reader.take_symbol(",") else " "
        parts.append(separator + _read_word(reader))
    return "".join(parts)


def _read_path(reader: Reader) -> str | None:
    """A list of names, or of strings that are names."""
    if reader.take("default"):
        reader.expect_end()
        return None
    names = [quote_in_path(_read_word(reader))]
    while reader.take_symbol(","):
        names.append(quote_in_path(_read_word(reader)))
    return ", ".join(names)


def _read_word(reader: Reader) -> str:
    sign = "-" if reader.take_symbol("-") else ""
    word = reader.next()
    if word.kind is TokenKind.SYMBOL:
        raise errors.SyntaxProblem(detail=f'at or near "{word.text}"')
    return sign + word.text


def read_settings(reader: Reader, role: str | None, database: str | None) -> ChangeSettings:
    """SET or RESET after the name of a role or database."""
    if reader.take("reset"):
        return ChangeSettings(role, database, None if reader.take("all") else read_setting_name(reader))
    reader.expect("set")
    if reader.peek(1) is not None and reader.plain(1) == "from":
        name = read_setting_name(reader)
        reader.expect("from", "current")
        return ChangeSettings(role, database, name, current=True)
    return ChangeSettings(role, database, *read_assignment(reader))

"""Base classes of errors: those of PEP 249, internal errors, and errors read back from a job's record."""

from __future__ import annotations

import re
from typing import ClassVar, Self

from seachange.errors.places import ErrorPlace

# The fields of messages that name objects of the schema, or count and measure something.
_NAMING = frozenset(
    {
        *("action", "bytes", "catalog", "column", "command", "constraint", "count", "count_max", "feature", "file"),
        *("folder", "free", "id", "job", "kind", "layout", "maximum", "minimum", "ms", "name", "needed", "node"),
        *("owner", "parent", "path", "privilege", "process", "relation", "release", "role", "seq", "snapshot"),
        *("status", "table", "type", "user", "version"),
    }
)
# The classes of errors whose free text is about values, or may be.
_ABOUT_VALUES = ("22", "23", "XX")
_QUOTED = re.compile(r"""\$\w*\$.*|"[^"]*"?|'[^']*'?|\([^()]*\)|[-+]?\b[0-9][\w.:-]*""", re.DOTALL)


class Warning(Exception):  # noqa: A001 - the name is PEP 249's
    """PEP 249: important warnings such as data truncation."""


class Error(Exception):
    """The base class: formats `message` with the named fields and keeps them in `fields`."""

    sqlstate: ClassVar[str] = "XX000"
    message: ClassVar[str] = "{detail}"
    # DETAIL and HINT, which a client may show below the message.
    detail_text: ClassVar[str | None] = None
    hint_text: ClassVar[str | None] = None

    def __init__(self, **fields: object) -> None:
        self.fields = fields
        self.detail = self.detail_text.format(**fields) if self.detail_text else None
        self.hint = self.hint_text.format(**fields) if self.hint_text else None
        super().__init__(self.message.format(**fields))

    # Where the error is: as the binder or parser knows it, and the character of the client's text, from 1, with it.
    place: ErrorPlace | None = None
    position: int | None = None
    statement: str | None = None

    def at(self, place: ErrorPlace | None) -> Self:
        """The same error with its place in the statement; one that it has already is more exact."""
        self.place = self.place or place
        return self

    def without_values(self) -> str:
        """The message with a ? in the place of everything that may be a value of a row or a constant of a statement."""
        shown = {name: value if name in _NAMING else "?" for name, value in self.fields.items()}
        if "detail" in shown and not self.sqlstate.startswith(_ABOUT_VALUES):
            shown["detail"] = _QUOTED.sub("?", str(self.fields["detail"]))
        return self.message.format(**shown)

    def located(self, place: str) -> Self:
        """The same error with the place where it occurred added to its message."""
        self.args = (f"{self} ({place})",)
        return self


class InterfaceError(Error):
    """PEP 249: misuse of the Python interface rather than of the database."""

    sqlstate = "08003"


class DatabaseError(Error):
    pass


class DataError(DatabaseError):
    sqlstate = "22000"


class OperationalError(DatabaseError):
    sqlstate = "58000"


class IntegrityError(DatabaseError):
    sqlstate = "23000"


class InternalError(DatabaseError):
    sqlstate = "XX000"


class ProgrammingError(DatabaseError):
    sqlstate = "42000"


class NotSupportedError(DatabaseError):
    sqlstate = "0A000"


class Bug(InternalError):
    message = "internal error: {detail}"
    hint_text = "This is a bug in Seachange; please report it with this message."


# Base classes of errors that are read from a record, by the class of their SQLSTATE.
_FAMILIES: dict[str, type[DatabaseError]] = {
    "0A": NotSupportedError,
    "22": DataError,
    "23": IntegrityError,
    "42": ProgrammingError,
    "XX": InternalError,
}


def remembered(sqlstate: str, message: str, hint: str | None = None) -> DatabaseError:
    """Rebuilds an error that was recorded by another process, from its SQLSTATE and message."""
    family = _FAMILIES.get(sqlstate[:2], OperationalError)
    class_ = type("RememberedError", (family,), {"sqlstate": sqlstate, "message": "{text}", "hint_text": None})
    error: DatabaseError = class_(text=message)
    error.hint = hint
    return error

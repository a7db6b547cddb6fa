"""The families of errors: the classes of PEP 249, our own bugs, and errors of which a record tells."""

from __future__ import annotations

from typing import ClassVar, Self


class Warning(Exception):  # noqa: A001 - the name is PEP 249's
    """PEP 249: important warnings such as data truncation."""


class Error(Exception):
    """The root: formats `message` with the named fields and remembers them."""

    sqlstate: ClassVar[str] = "XX000"
    message: ClassVar[str] = "{detail}"
    # What a client may show below the message, or leave out.
    detail_text: ClassVar[str | None] = None
    hint_text: ClassVar[str | None] = None

    def __init__(self, **fields: object) -> None:
        self.fields = fields
        self.detail = self.detail_text.format(**fields) if self.detail_text else None
        self.hint = self.hint_text.format(**fields) if self.hint_text else None
        super().__init__(self.message.format(**fields))

    def located(self, place: str) -> Self:
        """The same error, saying where it was met."""
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


# The parents of errors that come from a record: by the class of their SQLSTATE.
_FAMILIES: dict[str, type[DatabaseError]] = {
    "0A": NotSupportedError,
    "22": DataError,
    "23": IntegrityError,
    "42": ProgrammingError,
    "XX": InternalError,
}


def remembered(sqlstate: str, message: str, hint: str | None = None) -> DatabaseError:
    """An error that was met at another time or place, by its code and words."""
    family = _FAMILIES.get(sqlstate[:2], OperationalError)
    class_ = type("RememberedError", (family,), {"sqlstate": sqlstate, "message": "{text}", "hint_text": None})
    error: DatabaseError = class_(text=message)
    error.hint = hint
    return error

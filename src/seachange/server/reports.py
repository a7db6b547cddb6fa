"""Error and notice messages: fields by their type letters."""

from __future__ import annotations

from seachange import errors
from seachange.server.messages import report

# Fields of errors that name an object, and the letter of the message field.
_OBJECT_FIELDS = (("relation", "t"), ("column", "c"), ("constraint", "n"))
# Errors that drivers recognise by the PostgreSQL function that raises them.
_ROUTINES: dict[type[errors.Error], str] = {errors.ResultTypeChanged: "RevalidateCachedQuery"}


def error_report(error: errors.Error, severity: str = "ERROR") -> bytes:
    fields = [*_head(severity, error.sqlstate, str(error))]
    if error.detail:
        fields.append(("D", error.detail))
    if error.hint:
        fields.append(("H", error.hint))
    fields += [(letter, str(error.fields[name])) for name, letter in _OBJECT_FIELDS if error.fields.get(name)]
    routine = _ROUTINES.get(type(error))
    if routine is not None:
        fields.append(("R", routine))
    return report(b"E", fields)


def notice_report(text: str) -> bytes:
    return report(b"N", _head("NOTICE", "00000", text))


def _head(severity: str, code: str, text: str) -> tuple[tuple[str, str], ...]:
    return ("S", severity), ("V", severity), ("C", code), ("M", text)

"""Errors in the log of a node: those of clients by their SQLSTATE, and internal ones with an id and where they arose.

**Invariant:** a message is logged without values of rows and constants of statements, unless the log shows literals;
a password is never logged.
"""

from __future__ import annotations

import traceback
from pathlib import Path

from seachange import errors
from seachange.runtime.entropy import Entropy
from seachange.runtime.event_log import EventLog, FieldValue, Severity
from seachange.sql.text.normalized import is_about_password, normalize, without_passwords

_ID_BYTES = 4
# The classes of errors that are not the client's: of the surroundings, and our own.
_OURS = ("XX", "58", "53")


def log_problem(log: EventLog, problem: errors.Error, text: str | None, **fields: FieldValue) -> None:
    """`text` is that of the statement."""
    if not log.is_on:
        return
    shows = log.shows_literals and not (text is not None and is_about_password(text))
    severity = Severity.ERROR if problem.sqlstate.startswith(_OURS) else Severity.WARNING
    message = str(problem) if shows else problem.without_values()
    statement = None if text is None else (without_passwords(text) if log.shows_literals else normalize(text))
    about = {"sqlstate": problem.sqlstate, "message": message, "statement": statement or None}
    log.write(severity, "error", {**about, **fields})


def log_internal(log: EventLog, entropy: Entropy, problem: BaseException, place: str, **fields: FieldValue) -> str:
    """Returns the id under which the log has the error."""
    id_ = entropy.token(_ID_BYTES).hex()
    frames = traceback.extract_tb(problem.__traceback__)
    trace = " > ".join(f"{_module(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames)
    message = str(problem) if log.shows_literals else None
    about = {"id": id_, "in": place, "kind": type(problem).__name__, "message": message, "trace": trace or None}
    log.write(Severity.ERROR, "internal error", {**about, **fields})
    return id_


def _module(path: str) -> str:
    """The last two parts of a path: where a program is installed says nothing."""
    return "/".join(Path(path).parts[-2:])

"""VACUUM: which options it has, and what of them is heeded."""

from __future__ import annotations

from seachange import errors
from seachange.model.statements.session_statements import Vacuum
from seachange.sql.text.names import read_list, read_relations
from seachange.sql.text.tokens import Reader

# Statistics lie with the files and old versions need no freezing: what asks for them has nothing to do.
_HEEDED = "full"
_OPTIONS = (_HEEDED, "freeze", "verbose", "analyze")
_ON = ("true", "on")
_OFF = ("false", "off")


def read_vacuum(reader: Reader) -> Vacuum:
    if reader.take_symbol("("):
        options = read_list(reader, _read_option)
        reader.expect_symbol(")")
    else:
        # The form of old, in this order.
        options = tuple((name, True) for name in _OPTIONS if reader.take(name))
    tables = () if reader.at_end else read_relations(reader)
    return Vacuum(tables, (_HEEDED, True) in options)


def _read_option(reader: Reader) -> tuple[str, bool]:
    name = reader.take_any(*_OPTIONS)
    if name is None:
        raise errors.FeatureNotSupported(
            feature=f"option {reader.name().upper()} of VACUUM",
            instead="FULL is heeded, VERBOSE and ANALYZE are taken.",
        )
    is_off = reader.take_any(*_OFF) is not None
    if not is_off:
        reader.take_any(*_ON)
    return name, not is_off

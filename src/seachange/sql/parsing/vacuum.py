"""VACUUM: its options."""

from __future__ import annotations

from seachange import errors
from seachange.model.statements.session_statements import Vacuum
from seachange.sql.text.names import read_list, read_relations
from seachange.sql.text.tokens import Reader

# Statistics are stored with the files and old versions need no freezing, so only FULL has an effect.
_EFFECTIVE = "full"
_OPTIONS = (_EFFECTIVE, "freeze", "verbose", "analyze")
_ON = ("true", "on")
_OFF = ("false", "off")


def read_vacuum(reader: Reader) -> Vacuum:
    if reader.take_symbol("("):
        options = read_list(reader, _read_option)
        reader.expect_symbol(")")
    else:
        # The old syntax, with the options in this order.
        options = tuple((name, True) for name in _OPTIONS if reader.take(name))
    tables = () if reader.at_end else read_relations(reader)
    return Vacuum(tables, (_EFFECTIVE, True) in options)


def _read_option(reader: Reader) -> tuple[str, bool]:
    name = reader.take_any(*_OPTIONS)
    if name is None:
        raise errors.FeatureNotSupported(
            feature=f"option {reader.name().upper()} of VACUUM",
            instead="FULL is supported; VERBOSE and ANALYZE are accepted and ignored.",
        )
    is_off = reader.take_any(*_OFF) is not None
    if not is_off:
        reader.take_any(*_ON)
    return name, not is_off

"""DuckDB text for a row as a jsonb document, in the form in which PostgreSQL prints one.

Almost all of it is vectorised: only floats, intervals and addresses need a function of ours for each value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seachange.model.schema.descriptor import Column
from seachange.model.schema.enums import quote_text, relabel, relabel_list
from seachange.storage.arrow import column_name
from seachange.storage.duck_functions import PREFIX
from seachange.values.json_text import show_json
from seachange.values.types import Kind, SqlType

# The current label of each stored value, by the id of the enum type.
ShownLabels = Mapping[int, Mapping[str, str]]

_PLAIN = frozenset({Kind.BOOLEAN, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.OID, Kind.JSONB})
_TEXTS = frozenset({Kind.TEXT, Kind.VARCHAR, Kind.CHAR, Kind.NAME})
_FLOATS = frozenset({Kind.REAL, Kind.DOUBLE})


def json_object(columns: Sequence[Column], source: str, labels: ShownLabels) -> str:
    """The document of a row whose columns are named by their ids; `source` qualifies them."""
    ordered = sorted(columns, key=lambda c: (len(c.name.encode()), c.name.encode()))
    pieces = []
    for number, column in enumerate(ordered):
        start = ("{" if number == 0 else ", ") + f"{show_json(column.name)}: "
        value = json_value(f"{source}.{column_name(column.id)}", column.type, labels)
        pieces += [quote_text(start), f"coalesce({value}, 'null')"]
    return " || ".join([*pieces, "'}'"]) if pieces else "'{}'"


def json_value(text: str, type_: SqlType, labels: ShownLabels) -> str:
    """The document of a value in the type that it has in DuckDB; NULL for NULL."""
    shown = labels.get(type_.enum, {})
    if type_.element is not None:
        listed = relabel_list(text, dict(shown)) if type_.enum else text
        item = json_value("item", SqlType(Kind.TEXT) if type_.enum else type_.element, labels)
        each = f"list_transform({listed}, lambda item: coalesce({item}, 'null'))"
        return f"'[' || array_to_string({each}, ', ') || ']'"
    as_text = f"CAST({text} AS VARCHAR)"
    match type_.kind:
        case kind if kind in _PLAIN:
            return as_text
        case kind if kind in _TEXTS:
            return f"CAST(to_json({relabel(text, dict(shown)) if type_.enum else text}) AS VARCHAR)"
        case Kind.NUMERIC:
            return as_text if type_.precision else f"rtrim(rtrim({as_text}, '0'), '.')"
        case kind if kind in _FLOATS:
            own = f"{PREFIX}text({text})"
            return f"""CASE WHEN isfinite({text}) THEN {own} ELSE '"' || {own} || '"' END"""
        case Kind.JSON:
            return f"{PREFIX}jsonb({as_text})"
        case Kind.BYTEA:
            return f"""'"\\\\x' || lower(hex({text})) || '"'"""
        case Kind.TIMESTAMP:
            return f"""'"' || replace({as_text}, ' ', 'T') || '"'"""
        case Kind.TIMESTAMPTZ:
            # Sessions of the feed are in UTC: the offset is +00.
            zone = f"CASE WHEN isfinite({text}) THEN ':00' ELSE '' END"
            return f"""'"' || replace({as_text}, ' ', 'T') || {zone} || '"'"""
        case Kind.DATE | Kind.TIME | Kind.UUID:
            return f"""'"' || {as_text} || '"'"""
        case _:
            return f"""'"' || {PREFIX}text({text}) || '"'"""

"""DuckDB text for values as DataFrames of Spark show them, from rows and from jsonb documents, and for conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seachange.model.condition import Above, Among, Below, IsNull, StartsWith
from seachange.model.schema.enums import quote_text, relabel, relabel_list
from seachange.storage.arrow import column_name, interval_text
from seachange.storage.duck_functions import PREFIX
from seachange.storage.json_rows import ShownLabels
from seachange.values.types import Kind, SqlType

# A condition on a column as it is shown. Spark evaluates it again: it only has to be necessary.
FrameCondition = Above | Among | Below | IsNull | StartsWith

_SHOWN_AS_TEXT = frozenset({Kind.TIME, Kind.UUID, Kind.JSON, Kind.JSONB})
_ADDRESSES = frozenset({Kind.INET, Kind.CIDR})
# Texts in a document that are texts in a DataFrame.
_TEXTS = frozenset({Kind.TEXT, Kind.VARCHAR, Kind.CHAR, Kind.NAME, Kind.TIME, Kind.UUID, Kind.INET, Kind.CIDR})
_DOCUMENTS = frozenset({Kind.JSON, Kind.JSONB})


def frame_value(text: str, type_: SqlType, labels: ShownLabels) -> str:
    """A value in the type that the column has in a DataFrame."""
    shown = dict(labels.get(type_.enum, {}))
    if type_.element is not None:
        if type_.enum:
            return relabel_list(text, shown)
        item = frame_value("item", type_.element, labels)
        return text if item == "item" else f"list_transform({text}, lambda item: {item})"
    if type_.enum:
        return relabel(text, shown)
    match type_.kind:
        case kind if kind in _SHOWN_AS_TEXT:
            return f"CAST({text} AS VARCHAR)"
        case kind if kind in _ADDRESSES:
            return f"{PREFIX}text({text})"
        case Kind.INTERVAL:
            return interval_text(text)
        case Kind.OID:
            return f"CAST({text} AS BIGINT)"
        case Kind.CHAR if type_.length:
            # Spaces at the end count for nothing, so they are not stored.
            return f"rpad({text}, {type_.length}, ' ')"
        case _:
            return text


def document_value(document: str, name: str, type_: SqlType) -> str:
    """The value of a member, in the type that the column has in a DataFrame: `json_rows` in reverse. A text that is no
    value of the type is an error of DuckDB."""
    # A JSON pointer: its steps may contain any character.
    path = quote_text("/" + name.replace("~", "~0").replace("/", "~1"))
    if type_.element is not None:
        listed = f"""from_json(json_extract({document}, {path}), '["VARCHAR"]')"""
        item = "item" if type_.enum else _read_text("item", type_.element)
        return listed if item == "item" else f"list_transform({listed}, lambda item: {item})"
    return _read_text(f"json_extract_string({document}, {path})", type_)


def _read_text(text: str, type_: SqlType) -> str:
    if type_.enum:
        return text
    match type_.kind:
        case Kind.CHAR if type_.length:
            return f"rpad({text}, {type_.length}, ' ')"
        case kind if kind in _TEXTS:
            return text
        case kind if kind in _DOCUMENTS:
            return f"{PREFIX}jsonb({text})"
        case Kind.BYTEA:
            return f"unhex(substr({text}, 3))"
        case Kind.INTERVAL:
            return interval_text(f"CAST({text} AS INTERVAL)")
        case Kind.OID:
            return f"CAST({text} AS BIGINT)"
        case _:
            return f"CAST({text} AS {type_.duckdb})"


def frame_conditions(conditions: Sequence[FrameCondition], prefix: str) -> tuple[str, dict[str, Any]]:
    """The conjunction over columns named by their ids, and the values of its parameters."""
    pieces: list[str] = []
    values: dict[str, Any] = {}

    def parameter(value: Any) -> str:
        name = f"{prefix}_v{len(values)}"
        values[name] = value
        return f"${name}"

    for condition in conditions:
        name = column_name(condition.column)
        match condition:
            case Among(_, among):
                listed = ", ".join(parameter(value) for value in among)
                pieces.append(f"{name} IN ({listed})" if listed else "false")
            case Above(_, value, inclusive):
                pieces.append(f"{name} {'>=' if inclusive else '>'} {parameter(value)}")
            case Below(_, value, inclusive):
                pieces.append(f"{name} {'<=' if inclusive else '<'} {parameter(value)}")
            case StartsWith(_, value):
                pieces.append(f"starts_with({name}, {parameter(value)})")
            case IsNull():
                pieces.append(f"{name} IS NULL")
    return " AND ".join(pieces), values

"""The storage parameters of a table that concern its exports."""

from __future__ import annotations

from dataclasses import dataclass

from seachange.iceberg.table_schema import DEFAULTS_FORMAT
from seachange.model.schema.descriptor import Table


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Whether the table is exported at intervals, and the version of Iceberg's format."""

    is_enabled: bool
    format_version: int


def read_options(table: Table) -> ExportOptions:
    parameters = dict(table.parameters)
    version = int(parameters.get("seachange.iceberg_format", DEFAULTS_FORMAT))
    return ExportOptions(parameters.get("seachange.iceberg") == "on", version)

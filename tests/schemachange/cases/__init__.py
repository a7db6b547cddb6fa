"""All cases, by topic."""

from tests.schemachange.cases import column, constraint, conversion, enum_type, index, table, view

CASES = (
    *index.CASES,
    *column.CASES,
    *constraint.CASES,
    *conversion.CASES,
    *table.CASES,
    *enum_type.CASES,
    *view.CASES,
)

"""The texts of statements that replace or merge rows: a merge reads them from a temporary table, the stage."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from seachange.model.schema.descriptor import Column, Table

# The temporary table of the rows.
STAGE = "seachange_merged_rows"
_TARGET, _SOURCE = "target", "source"


def create_stage(table: Table, columns: Sequence[Column]) -> str:
    """A temporary table that has the columns as the table has them, and no rows."""
    chosen = [exp.column(column.name, quoted=True) for column in columns]
    query = exp.Select(expressions=chosen, from_=exp.From(this=_named(table))).limit(0)
    return f"CREATE TEMPORARY TABLE {_quoted(STAGE)} AS {query.sql('postgres')}"


def truncate_table(table: Table) -> str:
    return exp.TruncateTable(expressions=[_named(table)]).sql("postgres")


def drop_stage() -> str:
    return f"DROP TABLE {_quoted(STAGE)}"


def find_repeated(keys: Sequence[Column]) -> str:
    """One key that several of the rows have."""
    listed = [exp.column(key.name, quoted=True) for key in keys]
    each = [exp.Not(this=exp.Is(this=column.copy(), expression=exp.null())) for column in listed]
    several = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(1))
    query = exp.Select(expressions=listed, from_=exp.From(this=exp.table_(exp.to_identifier(STAGE, quoted=True))))
    return query.where(exp.and_(*each)).group_by(*listed).having(several).limit(1).sql("postgres")


def merge_stage(table: Table, columns: Sequence[Column], keys: Sequence[Column]) -> str:
    """Rows with a known key replace the given columns, others are inserted."""
    known = {key.id for key in keys}
    changed = [column for column in columns if column.id not in known]
    same = exp.and_(*(exp.EQ(this=_of(key, _TARGET), expression=_of(key, _SOURCE)) for key in keys))
    sets = ", ".join(f"{_quoted(c.name)} = {_of(c, _SOURCE).sql('postgres')}" for c in changed)
    names = ", ".join(_quoted(column.name) for column in columns)
    values = ", ".join(_of(column, _SOURCE).sql("postgres") for column in columns)
    update = f"UPDATE SET {sets}" if sets else "DO NOTHING"
    target, source = f"{_named(table).sql('postgres')} AS {_TARGET}", f"{_quoted(STAGE)} AS {_SOURCE}"
    met = f"ON {same.sql('postgres')} WHEN MATCHED THEN {update}"
    return f"MERGE INTO {target} USING {source} {met} WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({values})"  # noqa: S608 - quoted


def _of(column: Column, relation: str) -> exp.Column:
    return exp.column(exp.to_identifier(column.name, quoted=True), table=relation)


def _named(table: Table) -> exp.Table:
    return exp.table_(exp.to_identifier(table.name, quoted=True), db=exp.to_identifier(table.schema, quoted=True))


def _quoted(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql("postgres")

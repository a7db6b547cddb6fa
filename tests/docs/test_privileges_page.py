"""docs/privileges.md lists what each statement requires; `make golden` updates it."""

import re

import pytest

from seachange.model.statements.required_privileges import rows
from tests.differential.privilege_cases import CASES, DIFFERENCES
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "privileges.md"
MARK = "<!-- generated from src/seachange/model/statements/required_privileges.py -->\n"

# Names for users, where those of the classes are not clear.
LABELS: dict[str, str] = {
    "AddEnumValue": "ALTER TYPE ... ADD VALUE",
    "AlterTable AddRowId": "",
    "AlterTable DropRowId": "",
    "AlterTable KeepAsItIs": "ALTER TABLE ... SET (...) and other storage options",
    "AlterTable SetColumnSetting": "ALTER TABLE ... ALTER COLUMN ... SET COMPRESSION, STATISTICS",
    "ChangeDefaultPrivileges": "ALTER DEFAULT PRIVILEGES",
    "ChangeOwner": "ALTER TABLE, VIEW, SEQUENCE, TYPE ... OWNER TO",
    "ChangeOwner database": "ALTER DATABASE ... OWNER TO",
    "ChangeOwner schema": "ALTER SCHEMA ... OWNER TO",
    "ChangeSettings": "ALTER ROLE, DATABASE ... SET",
    "CopyStream": "COPY",
    "AdvanceFeed": "CALL seachange.advance_feed",
    "CreateEnum": "CREATE TYPE",
    "CreateTemporary": "CREATE TEMPORARY TABLE",
    "DeclareCursor": "DECLARE CURSOR",
    "DropEnumValue": "ALTER TYPE ... DROP VALUE",
    "DropObjects": "DROP VIEW, MATERIALIZED VIEW, SEQUENCE, TYPE, SCHEMA, DATABASE",
    "DropRoles": "DROP ROLE",
    "ExportTable": "CALL seachange.export_iceberg",
    "Grant": "GRANT, REVOKE on objects",
    "GrantRoles": "GRANT, REVOKE of roles",
    "ImportTable": "CALL seachange.import_table",
    "LockTables": "LOCK TABLE",
    "MoveObject": "ALTER TABLE, VIEW, SEQUENCE, TYPE ... SET SCHEMA",
    "NeedlessStatement": "REINDEX, ANALYZE, CHECKPOINT",
    "RefreshView": "REFRESH MATERIALIZED VIEW",
    "RenameEnumValue": "ALTER TYPE ... RENAME VALUE",
    "RenameObject": "ALTER VIEW, SEQUENCE, INDEX ... RENAME TO",
    "RenameObject database": "ALTER DATABASE ... RENAME TO",
    "RenameObject schema": "ALTER SCHEMA ... RENAME TO",
    "RenameObject type": "ALTER TYPE ... RENAME TO",
    "RenameRole": "ALTER ROLE ... RENAME TO",
    "SetSetting": "SET",
    "TruncateTables": "TRUNCATE",
}


def label(row: str) -> str:
    return LABELS.get(row, re.sub(r"(?<=[a-z])(?=[A-Z])", " ", row).upper())


def page() -> str:
    examples = {case.row: case.statement for case in reversed(CASES)}
    lines = ["| statement | requires | example |", "| --- | --- | --- |"]
    free = []
    for row, needs in rows().items():
        if needs and label(row):
            example = f"`{examples[row]}`" if row in examples else ""
            lines.append(f"| {label(row)} | {'; '.join(map(str, needs))} | {example} |")
        elif label(row):
            free.append(label(row))
    lines += ["", f"No privileges required: {', '.join(free)}."]
    lines += ["", "## Differences from PostgreSQL", ""]
    lines += [f"- `{statement}`: {reason}." for (statement, _), (_, _, reason) in DIFFERENCES.items()]
    return "\n".join(lines) + "\n"


@pytest.mark.golden
def test_the_page_says_what_is_required(rewrite: bool):
    head, mark, rest = PAGE.read_text().partition(MARK)
    assert mark
    if rewrite:
        PAGE.write_text(head + mark + page())
    else:
        assert rest == page()

"""Every statement has a builder."""

from typing import get_args

from seachange.model.statements.object_statements import ObjectStatement
from seachange.model.statements.table_statements import AlterAction, RenameTable, TableStatement
from seachange.planner.builders import statement


def test_every_statement_and_action_has_a_builder():
    assert set(get_args(TableStatement)) | set(get_args(ObjectStatement)) == set(statement._STATEMENTS)
    assert set(get_args(AlterAction)) == set(statement._ACTIONS) | {RenameTable}

"""Every statement has a builder."""

from typing import get_args

from seachange.model.statements.table_statements import AlterAction, DdlStatement, RenameTable
from seachange.planner.builders import statement


def test_every_statement_and_action_has_a_builder():
    assert set(get_args(DdlStatement)) == set(statement._STATEMENTS)
    assert set(get_args(AlterAction)) == set(statement._ACTIONS) | {RenameTable}

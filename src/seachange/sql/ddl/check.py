"""CHECK constraints in DDL."""

from __future__ import annotations

from seachange import errors
from seachange.model.statements.table_statements import CheckDefinition
from seachange.sql.ddl.expression import CHECK, compile_expression
from seachange.sql.text.tokens import Reader


def read_check(reader: Reader, name: str | None) -> CheckDefinition:
    definition = compile_check(reader.parenthesized(), name)
    if reader.take("no", "inherit"):
        raise errors.FeatureNotSupported(feature="NO INHERIT", instead="Omit it: there is no table inheritance.")
    return definition


def compile_check(text: str, name: str | None = None) -> CheckDefinition:
    expression = compile_expression(text, CHECK)
    return CheckDefinition(expression.pieces, expression.columns, name)

"""The arguments of EXECUTE: literals as they are, other expressions by a query."""

from __future__ import annotations

from sqlglot import exp

from seachange import errors
from seachange.sql.duck.operands import Argument, Given, read_operand
from seachange.sql.parsing.parse import TreeStatement, parse_script


def read_arguments(text: str) -> tuple[TreeStatement, list[Given | Argument] | None]:
    """A query that returns the arguments as its one row, and the arguments themselves if none needs a query."""
    (statement, *more) = parse_script(f"SELECT {text}")
    tree = statement.tree if isinstance(statement, TreeStatement) else None
    extra = [key for key, value in tree.args.items() if value and key != "expressions"] if tree is not None else []
    if more or not isinstance(tree, exp.Select) or not isinstance(statement, TreeStatement) or extra:
        raise errors.SyntaxProblem(detail="argument list expected")
    operands = [read_operand(node) for node in tree.expressions]
    plain = [operand for operand in operands if isinstance(operand, Given | Argument)]
    return statement, plain if len(plain) == len(operands) else None

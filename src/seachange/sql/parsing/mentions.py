"""Names that a statement's text mentions: enough to decide whether it needs a certain column.

**Invariant:** a statement that needs a column of a table either names it or uses all columns of the table. The reverse
is not true: a name may be that of another table's column.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from seachange.model.schema.shape import CONFLICT_TARGETS
from seachange.sql.parsing.parse import Parsed, TreeStatement


@dataclass(frozen=True, slots=True, eq=False)
class Mentions:
    """`names` are in lower case; `whole`: all columns of its tables, whatever their names."""

    names: frozenset[str] = frozenset()
    whole: bool = False

    def includes(self, name: str) -> bool:
        if name == CONFLICT_TARGETS:
            return name in self.names
        return self.whole or name.lower() in self.names


NOTHING = Mentions()
EVERYTHING = Mentions(whole=True)


def mentions_of(parsed: Parsed) -> Mentions:
    """Statements other than queries and DML are assumed to need everything."""
    if not isinstance(parsed, TreeStatement):
        return EVERYTHING
    tree = parsed.tree
    names = {identifier.name.lower() for identifier in tree.find_all(exp.Identifier)}
    if tree.find(exp.OnConflict):
        names.add(CONFLICT_TARGETS)
    relations = {table.alias_or_name.lower() for table in tree.find_all(exp.Table)}
    # The row of a relation as one value, or a column of the same name.
    has_rows = any(column.name.lower() in relations for column in tree.find_all(exp.Column))
    is_whole = any(_takes_all(node) for node in tree.find_all(exp.Star, exp.Insert, exp.Join))
    return Mentions(frozenset(names), has_rows or is_whole)


def _takes_all(node: exp.Expr) -> bool:
    if isinstance(node, exp.Star):
        return not isinstance(node.parent, exp.Count)
    if isinstance(node, exp.Insert):
        return not (node.args.get("default") or isinstance(node.this, exp.Schema | exp.Tuple))
    return bool(node.args.get("method"))

"""What a statement reads of its tables, as far as its text tells without knowing them."""

from __future__ import annotations

from sqlglot import exp

# With each of these a statement may be done before it has read everything, or read only what another table leads to.
_STOPPING = (exp.Join, exp.Limit, exp.Fetch, exp.Lateral)


def columns_read(tree: exp.Expr) -> frozenset[str] | None:
    """Names, in lower case, among which are all columns that are read; None when it may be any column.

    Every identifier counts that is not the name of a table in its place; what has no name (a star, a natural join, a
    table where a value stands, columns renamed by their order) counts as everything.
    """
    if any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star)):
        return None
    if any(not select.expressions for select in tree.find_all(exp.Select)):
        return None
    if any(join.method for join in tree.find_all(exp.Join)):
        return None
    if any(alias.columns for alias in tree.find_all(exp.TableAlias)):
        return None
    tables = {table.alias_or_name.lower() for table in tree.find_all(exp.Table)}
    if any(not column.table and column.name.lower() in tables for column in tree.find_all(exp.Column)):
        return None
    return frozenset(i.name.lower() for i in tree.find_all(exp.Identifier) if not _names_table(i))


def _names_table(identifier: exp.Identifier) -> bool:
    qualifies = isinstance(identifier.parent, exp.Column) and identifier.arg_key != "this"
    return qualifies or isinstance(identifier.parent, exp.Table | exp.TableAlias)


def columns_sought(tree: exp.Expr) -> frozenset[str] | None:
    """Names among which are all columns by whose values rows may be skipped; None when it is not only by values."""
    if tree.find(*_STOPPING) is not None:
        return None
    conditions = [where for where in tree.find_all(exp.Where, exp.Qualify) if not isinstance(where.parent, exp.Filter)]
    return frozenset(i.name.lower() for where in conditions for i in where.find_all(exp.Identifier))

"""Column usage: which columns a statement reads, from its text alone."""

from __future__ import annotations

from sqlglot import exp

# With these a statement may end before it has read everything, or read only what another table leads to.
_STOPPING = (exp.Limit, exp.Fetch, exp.Lateral)

# These may refer to columns by their position in the select list.
_COUNTING_COLUMNS = ("distinct", "group", "order")


def columns_read(tree: exp.Expr) -> frozenset[str] | None:
    """Names, in lower case, that include all columns that are read; None if it may be any column.

    Every identifier counts that is not the name of a table in its place; what has no name (a star, a natural join, a
    table used as a value, columns renamed by position) counts as everything.
    """
    if any(not _reads_nothing(star) for star in tree.find_all(exp.Star)):
        return None
    if any(not select.expressions for select in tree.find_all(exp.Select)):
        return None
    if any(join.method for join in tree.find_all(exp.Join)):
        return None
    if any(alias.columns and not _renames_query(alias) for alias in tree.find_all(exp.TableAlias)):
        return None
    tables = {table.alias_or_name.lower() for table in tree.find_all(exp.Table)}
    if any(not column.table and column.name.lower() in tables for column in tree.find_all(exp.Column)):
        return None
    return frozenset(i.name.lower() for i in tree.find_all(exp.Identifier) if not _names_table(i))


def _reads_nothing(star: exp.Expr) -> bool:
    """The stars of count(*) and EXISTS (SELECT * ...), where only the number of rows matters."""
    select = star.parent
    if isinstance(select, exp.Count):
        return True
    if any(star.args.values()) or not isinstance(select, exp.Select) or not isinstance(select.parent, exp.Exists):
        return False
    return not any(select.args.get(clause) for clause in _COUNTING_COLUMNS)


def _renames_query(alias: exp.TableAlias) -> bool:
    """The alias renames the result of a query, which names the columns that it reads itself."""
    source = alias.parent
    return isinstance(source, exp.CTE | exp.Subquery) and isinstance(source.this, exp.Query)


def _names_table(identifier: exp.Identifier) -> bool:
    qualifies = isinstance(identifier.parent, exp.Column) and identifier.arg_key != "this"
    return qualifies or isinstance(identifier.parent, exp.Table | exp.TableAlias)


def columns_sought(tree: exp.Expr) -> frozenset[str] | None:
    """Names that include all columns by whose values rows may be skipped; None if rows are skipped for other reasons
    too."""
    if tree.find(*_STOPPING) is not None or any(join.method for join in tree.find_all(exp.Join)):
        return None
    conditions: list[exp.Expr] = [
        where for where in tree.find_all(exp.Where, exp.Qualify) if not isinstance(where.parent, exp.Filter)
    ]
    # A join filters by the values of the other side.
    for join in tree.find_all(exp.Join):
        conditions += [condition for condition in (join.args.get("on"), *(join.args.get("using") or ())) if condition]
    names = (i for condition in conditions for i in condition.find_all(exp.Identifier) if not _names_table(i))
    return frozenset(i.name.lower() for i in names)

"""Scopes of WITH: which names in a tree mean a WITH query rather than a table."""

from __future__ import annotations

from sqlglot import exp

# Key of `meta` for a reference to rows that the statement passes in, rather than to a table of the catalog.
GIVEN = "given"
# The schema of such rows. No statement can contain a NUL.
GIVEN_SCHEMA = "\x00given"
# The same of a table that is read with its hidden columns: DML marks its target so.
WITH_HIDDEN = "with_hidden"


def is_cte_reference(table: exp.Table) -> bool:
    """Walks from the reference to the root; a WITH list on the way hides tables of the same name."""
    if table.args.get("db"):
        return False
    inside: exp.Expr = table
    node = table.parent
    while node is not None:
        if isinstance(node, exp.With):
            if table.name in _earlier(node, inside):
                return True
            # Its other queries were already examined: continue above the statement that it belongs to.
            inside, node = node, node.parent
            if node is not None:
                inside, node = node, node.parent
            continue
        with_ = node.args.get("with_")
        if with_ is not None and any(cte.alias == table.name for cte in with_.expressions):
            return True
        inside, node = node, node.parent
    return False


def _earlier(with_: exp.With, inside: exp.Expr) -> set[str]:
    """The names that the query `inside` of the list sees: earlier ones, and with RECURSIVE its own."""
    names: set[str] = set()
    for cte in with_.expressions:
        if cte is inside:
            return names | {cte.alias} if with_.recursive else names
        names.add(cte.alias)
    return names

"""The text of a view, as it was written, with the current names of the relations that it reads: a dump is loaded with
an empty search path."""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp

from seachange.model.schema.objects import View
from seachange.sql.pgcatalog.facts import Facts, object_oid, quote_name
from seachange.sql.text.scope import is_cte_reference
from seachange.sql.text.tokens import split_script
from seachange.sql.text.tree import parse_tree

# The schema as written ("" without one), the name, the place of both in the text, and whether it has an alias.
_Mention = tuple[str, str, int, int, bool]


def view_definition(facts: Facts, view: View) -> str:
    text = view.query.strip().rstrip("; \n")
    ids = {(schema, name): id_ for schema, name, id_ in view.names}
    for schema, name, start, end, has_alias in reversed(_mentions(text)):
        id_ = ids.get((schema, name))
        relation = facts.relation_by_oid.get(object_oid(id_)) if id_ is not None else None
        if relation is None or (relation.name == name and (schema == relation.schema or facts.is_visible(relation))):
            continue
        shown = quote_name(relation.name)
        if schema or not facts.is_visible(relation):
            shown = f"{quote_name(relation.schema)}.{shown}"
        alias = f" {quote_name(name)}" if relation.name != name and not has_alias else ""
        text = f"{text[:start]}{shown}{alias}{text[end:]}"
    return f" {text};"


@lru_cache(maxsize=256)
def _mentions(text: str) -> tuple[_Mention, ...]:
    """In the order of their places."""
    (raw,) = split_script(text)
    found = []
    for table in parse_tree(raw).find_all(exp.Table):
        name, schema = table.this, table.args.get("db")
        if not isinstance(name, exp.Identifier) or is_cte_reference(table) or name.meta_get("start") is None:
            continue
        start = (schema or name).meta["start"]
        has_alias = table.args.get("alias") is not None
        found.append((_folded(schema), _folded(name), start, name.meta["end"] + 1, has_alias))
    return tuple(sorted(found, key=lambda mention: mention[2]))


def _folded(name: exp.Expr | None) -> str:
    if name is None:
        return ""
    return str(name.this) if name.args.get("quoted") else str(name.this).lower()

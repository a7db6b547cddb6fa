"""The text of a view with the names that relations, columns and sequences have now: a dump is loaded with an empty
search path, and the view that it makes has the same columns.

A column that was renamed has its new name in the text, with its old name as an alias where that names a result. Where
columns are matched by name (USING, a star), the relation is replaced by a subquery that gives them their old names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TypeAlias

from seachange.model.relation import RelationName
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Sequence as SequenceObject
from seachange.model.schema.objects import View
from seachange.sql.pgcatalog.facts import Facts, Relation, object_oid, quote_name
from seachange.sql.pgcatalog.view_names import KnownNames, Mention, RelationPlace, Span, ViewNames, find_names
from seachange.sql.text.sequence_names import rename_sequences

# Of one relation: the names in the text with those that the columns have now, in the relation's order.
_Renamed: TypeAlias = Mapping[str, str]
_Patch: TypeAlias = tuple[Span, str]


def view_definition(facts: Facts, view: View) -> str:
    text = view.query.strip().rstrip("; \n")
    relations = dict(_relations(facts, view))
    known = tuple(_known(view, place, relation) for place, relation in relations.items())
    found = find_names(text, known)
    renamed = {place: dict(_renamed(view, relation)) for place, relation in relations.items()}
    patches = list(_output_patches(view, found))
    aliased = {end for (start, end), _ in patches if start == end}
    patches += _relation_patches(facts, found, relations, renamed)
    patches += _reference_patches(found, renamed, aliased)
    for (start, end), shown in sorted(patches, key=lambda patch: patch[0], reverse=True):
        text = text[:start] + shown + text[end:]
    names = dict(_sequences(facts, view))
    return f" {_with_columns(view, found, rename_sequences(text, names) if names else text)};"


def _relations(facts: Facts, view: View) -> Iterator[tuple[RelationPlace, Table | View]]:
    for schema, name, id_ in view.names:
        relation = facts.relation_by_oid.get(object_oid(id_))
        if isinstance(relation, Table | View):
            yield (schema, name), relation


def _known(view: View, place: RelationPlace, relation: Table | View) -> KnownNames:
    if isinstance(relation, View):
        return place, relation.columns
    return place, tuple(name for name, _ in _renamed(view, relation))


def _renamed(view: View, relation: Table | View) -> Iterator[tuple[str, str]]:
    if not isinstance(relation, Table):
        return
    pairs = zip(view.column_uses, view.column_names, strict=True)
    used = {column: name for (id_, column), name in pairs if id_ == relation.id}
    for column in relation.columns:
        if column.id in used:
            yield used[column.id], column.name


def _sequences(facts: Facts, view: View) -> Iterator[tuple[RelationName, str]]:
    for schema, name, id_ in view.names:
        sequence = facts.by_id.get(id_)
        if isinstance(sequence, SequenceObject):
            is_same = (schema, name) == ("", sequence.name) and facts.is_visible(sequence)
            if not is_same:
                yield RelationName(schema or None, name), _shown(facts, sequence, bool(schema))


def _shown(facts: Facts, relation: Relation, is_qualified: bool) -> str:
    name = quote_name(relation.name)
    return f"{quote_name(relation.schema)}.{name}" if is_qualified or not facts.is_visible(relation) else name


def _needs_subquery(found: ViewNames, relation: Table | View, renamed: _Renamed) -> bool:
    changed = {old for old, new in renamed.items() if old != new}
    if changed & found.derived:
        return True
    is_wider = isinstance(relation, Table) and len(relation.visible_columns) != len(renamed)
    return (found.is_matched and bool(changed)) or (found.is_open and is_wider)


def _relation_patches(
    facts: Facts,
    found: ViewNames,
    relations: Mapping[RelationPlace, Table | View],
    renamed: Mapping[RelationPlace, _Renamed],
) -> Iterator[_Patch]:
    for mention in found.mentions:
        relation = relations.get(mention.relation)
        if relation is None:
            continue
        if _needs_subquery(found, relation, renamed[mention.relation]):
            yield mention.span, _subquery(_shown(facts, relation, False), mention, renamed[mention.relation])
            continue
        schema, name = mention.relation
        if relation.name == name and (schema == relation.schema or facts.is_visible(relation)):
            continue
        alias = f" {quote_name(name)}" if relation.name != name and not mention.has_alias else ""
        yield mention.span, _shown(facts, relation, bool(schema)) + alias


def _subquery(relation: str, mention: Mention, renamed: _Renamed) -> str:
    names = ((quote_name(new), quote_name(old)) for old, new in renamed.items())
    columns = ", ".join(new if new == old else f"{new} AS {old}" for new, old in names)
    alias = "" if mention.has_alias else f" {quote_name(mention.relation[1])}"
    return f"(SELECT {columns} FROM {relation}){alias}"  # noqa: S608 - quoted


def _reference_patches(
    found: ViewNames, renamed: Mapping[RelationPlace, _Renamed], aliased: Collection[int]
) -> Iterator[_Patch]:
    """`aliased` are the ends of items that get another alias."""
    if found.is_matched:
        return
    for each in found.references:
        names = renamed[each.relation]
        new = names.get(each.column, each.column)
        if new == each.column or any(old != now and old in found.derived for old, now in names.items()):
            continue
        # Without a qualifier, the new name could mean another column, or a result.
        qualifier = "" if each.is_qualified else f"{quote_name(each.source)}."
        alias = f" AS {quote_name(each.column)}" if each.names_output and each.span[1] not in aliased else ""
        yield each.span, f"{qualifier}{quote_name(new)}{alias}"


def _output_patches(view: View, found: ViewNames) -> Iterator[_Patch]:
    """The names of columns that CREATE VIEW has listed."""
    if not _is_renamed(view, found) or not _can_name(view, found):
        return
    for item, name in zip(found.items, view.columns, strict=True):
        if item.name != name and item.name_span is not None:
            yield item.name_span, quote_name(name)
        elif item.name != name and item.end is not None:
            yield (item.end, item.end), f" AS {quote_name(name)}"


def _is_renamed(view: View, found: ViewNames) -> bool:
    return found.output is not None and len(found.output) == len(view.columns) and found.output != view.columns


def _can_name(view: View, found: ViewNames) -> bool:
    """Whether each item has a place for its name. One that is a column has got its alias, if it was renamed."""
    if len(found.items) != len(view.columns):
        return False
    pairs = zip(found.items, view.columns, strict=True)
    return all(item.name == name or item.name_span is not None or item.end is not None for item, name in pairs)


def _with_columns(view: View, found: ViewNames, text: str) -> str:
    if not _is_renamed(view, found) or _can_name(view, found):
        return text
    columns = ", ".join(quote_name(name) for name in view.columns)
    return f"SELECT {columns} FROM ({text}) {quote_name(view.name)}({columns})"  # noqa: S608 - quoted

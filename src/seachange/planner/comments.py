"""Comments made while a part of a table is being replaced by another.

A change moves the comments that it was planned with. One that was made since is on a part that goes: on the old one
when the change is published, on the new one when it is reverted.

One that was taken away since does not come back with the part that it was to be moved to.

**Invariant:** such a comment stays with what has taken the place of its part, and is later than what was moved there;
if nothing has, it goes. One that was removed since is not moved.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from seachange.model.change import elements
from seachange.model.change.elements import Element
from seachange.model.object_kind import ObjectKind
from seachange.model.states import State

Part = tuple[ObjectKind, int]


def follow_comments(
    before: Mapping[Element, State], parts: dict[Element, State], missed: Collection[elements.Comment]
) -> None:
    """`parts` are those of the next version, of which `before` is the one that there was. `missed` are those that the
    change takes out, and that were not there any more."""
    made = [e for e in parts if isinstance(e, elements.Comment) and e.part is not None]
    if not made:
        return
    kept = {comment.part for comment in made if comment in before}
    for moved in [comment for comment in made if comment not in before and comment.part in kept]:
        made.remove(moved)
        del parts[moved]
    there, known, places = _names(parts), _names(before), _places(parts)
    _forget_removed(made, before, parts, there, known)
    named: dict[tuple[ObjectKind, str], Part] = {
        (part[0], name): part for part, name in there.items() if part[0] is not ObjectKind.COLUMN
    }

    def successor_of(part: Part) -> Part | None:
        """Of one that goes."""
        if part in there or part not in known:
            return None
        return places.get(part) or named.get((part[0], known[part]))

    for removed in missed:
        successor = successor_of(removed.part) if removed.part is not None else None
        if successor is not None and successor not in kept:
            parts.pop(replace(removed, part=successor), None)
    for comment in made:
        assert comment.part is not None
        if comment.part in there or comment.part not in known:
            continue
        state = parts.pop(comment)
        successor = successor_of(comment.part)
        if successor is not None:
            for other in [e for e in parts if isinstance(e, elements.Comment) and e.part == successor]:
                del parts[other]
            parts[replace(comment, part=successor)] = state


def _forget_removed(
    made: list[elements.Comment],
    before: Mapping[Element, State],
    parts: dict[Element, State],
    there: Mapping[Part, str],
    known: Mapping[Part, str],
) -> None:
    commented = {e.part for e in before if isinstance(e, elements.Comment)}
    gone = {(part[0], name): part for part, name in known.items() if part not in there}
    for comment in [c for c in made if c not in before and c.part in there]:
        assert comment.part is not None
        old = gone.get((comment.part[0], there[comment.part]))
        if old is not None and old not in commented:
            made.remove(comment)
            del parts[comment]


def _names(parts: Iterable[Element]) -> Mapping[Part, str]:
    found: dict[Part, str] = {}
    for element in parts:
        match element:
            case elements.ColumnName(column_id=id_, name=name):
                found[ObjectKind.COLUMN, id_] = name
            case elements.IndexName(index_id=id_, name=name):
                found[ObjectKind.INDEX, id_] = name
            case elements.ConstraintName(constraint_id=id_, name=name):
                found[ObjectKind.CONSTRAINT, id_] = name
            case _:
                pass
    return found


def _places(parts: Iterable[Element]) -> Mapping[Part, Part]:
    """Columns by those that stood in their place: another of the same name may have nothing to do with it."""
    columns = [e for e in parts if isinstance(e, elements.AnyColumn)]
    return {
        (ObjectKind.COLUMN, c.in_place_of): (ObjectKind.COLUMN, c.column_id)
        for c in columns
        if c.in_place_of is not None
    }

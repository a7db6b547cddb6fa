"""What the binder has found so far about the expressions of a statement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from seachange import errors
from seachange.sql.bind.overloads import Chosen, NoMatch, choose_operator, common_type
from seachange.sql.bind.places import place_of, place_of_operator
from seachange.sql.bind.scope import BindCatalog, Columns, NameScope
from seachange.sql.bind.types import BOOLEAN, UNKNOWN, BoundType
from seachange.values.coercion import coerce
from seachange.values.types import INTEGERS, Kind

BindNode = Callable[["Expressions", exp.Expr, NameScope], BoundType | None]
BindQuery = Callable[["Expressions", exp.Expr, NameScope], Columns]

# They have the type of what they contain.
WRAPPERS: Final = (exp.Paren, exp.Alias, exp.Collate, exp.Ordered, exp.IgnoreNulls, exp.RespectNulls)


# Types whose constants are read the same way here and in DuckDB.
_CHECKED: Final = frozenset({*INTEGERS, Kind.BOOLEAN, Kind.UUID})
# Conditions of single rows.
_OF_ROWS: Final = frozenset({"WHERE", "JOIN/ON"})
_SETS: Final = (exp.ExplodingGenerateSeries, exp.GenerateSeries, exp.Explode, exp.Unnest)


def refuse_row_sets(node: exp.Expr, place: str) -> None:
    """Rejects what is computed from several rows, or gives several, but for those of subqueries."""
    for part in node.walk(prune=lambda each: isinstance(each, exp.Query)):
        if isinstance(part, exp.Window):
            raise errors.WindowingProblem(detail=f"window functions are not allowed in {place}").at(place_of(part))
        if isinstance(part, exp.AggFunc) and not isinstance(part.parent, exp.Window):
            raise errors.GroupingProblem(detail=f"aggregate functions are not allowed in {place}").at(place_of(part))
        if isinstance(part, _SETS) and not isinstance(part.parent, exp.Table):
            raise errors.FeatureNotSupported(
                feature=f"a set-returning function in {place}", instead="Use a subquery in FROM."
            )


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator or function with the types that its operands have, and those that it takes."""

    name: str
    given: tuple[BoundType | None, ...]
    taken: tuple[BoundType | None, ...]
    result: BoundType | None = None

    def __deepcopy__(self, memo: object) -> Operation:
        """Copies of a tree share what is known of its nodes."""
        return self


@dataclass(slots=True)
class Expressions:
    """The types found so far, by the identities of nodes: valid while the tree is neither changed nor dropped. The
    types of parameters are those that the client has declared, then those that their first use requires."""

    catalog: BindCatalog
    bind_query: BindQuery
    bind_node: BindNode
    parameters: dict[int, BoundType] = field(default_factory=dict)
    types: dict[int, BoundType] = field(default_factory=dict)
    # Operators and calls, constants that have got a type, and whole rows: what their translation needs.
    operations: list[tuple[exp.Expr, Operation]] = field(default_factory=list)
    converted: list[tuple[exp.Expr, BoundType]] = field(default_factory=list)
    rows: list[tuple[exp.Expr, Columns]] = field(default_factory=list)
    # What stars stand for: columns with their qualifiers.
    stars: list[tuple[exp.Expr, Sequence[tuple[str, str]]]] = field(default_factory=list)

    def bind(self, node: exp.Expr, scope: NameScope) -> BoundType | None:
        try:
            found = self.bind_node(self, node, scope)
        except errors.Error as error:
            raise error.at(error.place or place_of(node)) from None
        if found is not None:
            self.types[id(node)] = found
        return found

    def shown(self, type_: BoundType | None) -> str:
        """A type as error messages show it."""
        declared = type_.declared if type_ is not None else None
        plain = declared.element or declared if declared is not None else None
        if plain is None or not plain.enum:
            return str(type_)
        return self.catalog.enum_name(plain.enum) + ("" if plain is declared else "[]")

    def convert(self, node: exp.Expr, type_: BoundType | None) -> None:
        """The value is converted to the type: a constant or parameter without a type gets it."""
        for inner, found in self._settle(node, type_):
            if isinstance(inner, exp.Literal) and found.declared is not None and found.declared.kind in _CHECKED:
                try:
                    coerce(found.declared, inner.name)
                except errors.Error as error:
                    raise error.at(place_of(inner)) from None
            self.converted.append((inner, found))

    def assign(self, node: exp.Expr, type_: BoundType | None) -> None:
        """The value is converted by what surrounds it: a cast, or the column that it is stored in."""
        list(self._settle(node, type_))

    def _settle(self, node: exp.Expr, type_: BoundType | None) -> Iterator[tuple[exp.Expr, BoundType]]:
        """The constant or parameter that gets the type, if it is one, with the type that it has then."""
        if type_ is None or type_ == UNKNOWN:
            return
        while isinstance(node, WRAPPERS):
            if self.types.get(id(node)) == UNKNOWN:
                self.types[id(node)] = type_
            node = node.this
        if isinstance(node, exp.Parameter):
            number = parameter_number(node)
            if number is not None:
                type_ = self.parameters.setdefault(number, type_.plain)
        elif self.types.get(id(node)) != UNKNOWN:
            return
        self.types[id(node)] = type_
        yield node, type_

    def note(self, node: exp.Expr, name: str, given: Sequence[BoundType | None], chosen: Chosen | None) -> None:
        if chosen is not None:
            self.operations.append((node, Operation(name, tuple(given), tuple(chosen.arguments), chosen.result)))

    def bind_condition(self, node: exp.Expr, scope: NameScope, place: str) -> None:
        """Of WHERE and others that take a boolean."""
        if place in _OF_ROWS:
            refuse_row_sets(node, place)
        self.check_condition(node, self.bind(node, scope), place)

    def check_condition(self, node: exp.Expr, found: BoundType | None, place: str) -> None:
        if found is None or found == BOOLEAN:
            return
        if found == UNKNOWN:
            literal = node.unnest()
            if isinstance(literal, exp.Literal) and BOOLEAN.declared is not None:
                try:
                    coerce(BOOLEAN.declared, literal.name)
                except errors.Error as error:
                    raise error.at(place_of(node)) from None
            self.convert(node, BOOLEAN)
        else:
            detail = f"argument of {place} must be type boolean, not type {self.shown(found)}"
            raise errors.DatatypeMismatch(detail=detail).at(place_of(node))

    def meet(self, nodes: Sequence[exp.Expr], types: Sequence[BoundType | None], place: str) -> BoundType | None:
        """The type that values have together."""
        known = [type_ for type_ in types if type_ is not None]
        if len(known) != len(types):
            return None
        found = common_type(known)
        if found is None:
            first, other = _mismatched(known)
            detail = f"{place} types {self.shown(first)} and {self.shown(other)} cannot be matched"
            at = known.index(other)
            raise errors.DatatypeMismatch(detail=detail).at(place_of(nodes[at]) if at < len(nodes) else None)
        for node in nodes:
            self.convert(node, found)
        return found

    def operate(
        self,
        name: str,
        nodes: Sequence[exp.Expr],
        types: Sequence[BoundType | None],
        node: exp.Expr | None = None,
    ) -> Chosen | None:
        """An operator on these operands; None if PostgreSQL has no operator of that name for our types."""
        try:
            chosen = choose_operator(name, tuple(types))
        except KeyError:
            return None
        except NoMatch:
            if None in types:
                return None
            given = [self.shown(type_) for type_ in types]
            shown = f" {name} ".join(given) if len(given) > 1 else f"{name} {given[0]}"
            error = errors.UndefinedFunction(detail=f"operator does not exist: {shown}")
            raise error.at(place_of_operator(node) if node is not None else None) from None
        for operand, type_ in zip(nodes, chosen.arguments, strict=True):
            self.convert(operand, type_)
        if node is not None:
            self.note(node, name, types, chosen)
        return chosen


def parameter_number(node: exp.Parameter) -> int | None:
    return int(node.this.name) if isinstance(node.this, exp.Literal) and node.this.name.isdigit() else None


def _mismatched(types: Sequence[BoundType]) -> tuple[BoundType, BoundType]:
    known = [type_ for type_ in types if type_ != UNKNOWN]
    return known[0], next(type_ for type_ in known if type_.name != known[0].name)

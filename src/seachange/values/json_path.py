"""Evaluation of SQL/JSON paths on a document.

In lax mode arrays are unwrapped where an element is needed, other items count as arrays of one element, and missing
items are no error. An error inside a predicate makes it unknown, which is None.

>>> query('{"a": [1, 2, 3]}', "$.a[*] ? (@ > $least)", '{"least": 1}', like=str.startswith)
['2', '3']
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any, Final

from seachange import errors
from seachange.values import json_path_syntax as syntax
from seachange.values.json_text import parse_json, show_json
from seachange.values.step_budget import StepBudget

# Whether a text matches a pattern that starts with flags.
Like = Callable[[str, str], bool]
# The maximum number of digits of a product of two numbers of a document.
_DIGITS: Final = 200
_PREDICATES: Final = (
    syntax.PathComparison,
    syntax.PathJunction,
    syntax.PathNegation,
    syntax.PathIsUnknown,
    syntax.PathExists,
    syntax.PathStartsWith,
    syntax.PathLikeRegex,
)
_FLAGS: Final = frozenset("ism")
_TYPES: Final[tuple[tuple[type, str], ...]] = (
    (bool, "boolean"),
    (str, "string"),
    (Decimal, "number"),
    (list, "array"),
    (dict, "object"),
    (dt.datetime, "timestamp without time zone"),
    (dt.date, "date"),
)


def exists(document: str, path: str, variables: str, like: Like) -> bool:
    return bool(_run(document, path, variables, like))


def query(document: str, path: str, variables: str, like: Like) -> list[str]:
    """The texts of all items."""
    return [show_json(_plain(item)) for item in _run(document, path, variables, like)]


def match(document: str, path: str, variables: str, like: Like) -> bool | None:
    found = _run(document, path, variables, like)
    if len(found) != 1 or not (found[0] is None or isinstance(found[0], bool)):
        raise errors.SingletonRequired(detail="single boolean result is expected")
    return found[0]


def _run(document: str, path: str, variables: str, like: Like) -> list[Any]:
    given = parse_json(variables)
    if not isinstance(given, dict):
        raise errors.InvalidParameterValue(detail='"vars" argument is not an object')
    parsed, root = syntax.parse_path(path), parse_json(document)
    try:
        return _Evaluation(parsed, root, given, like, StepBudget("a JSON path"), root).any(parsed.root)
    except RecursionError:
        raise errors.StatementTooComplex() from None


def _plain(item: Any) -> Any:
    return item.isoformat() if isinstance(item, dt.date) else item


@dataclass(frozen=True, slots=True)
class _Evaluation:
    path: syntax.JsonPath
    root: Any
    variables: dict[str, Any]
    like: Like
    budget: StepBudget
    # The item that @ denotes, and the last index of the array that a subscript applies to.
    current: Any
    last: int | None = None

    @property
    def strict(self) -> bool:
        return self.path.strict

    def any(self, node: syntax.Node) -> list[Any]:
        return [self.truth(node)] if isinstance(node, _PREDICATES) else self.items(node)

    # Expressions.

    def items(self, node: syntax.Expression) -> list[Any]:
        match node:
            case syntax.PathConstant():
                return [node.value]
            case syntax.Symbol("$"):
                return [self.root]
            case syntax.Symbol("last"):
                if self.last is None:
                    raise errors.SyntaxProblem(detail="LAST is allowed only in array subscripts")
                return [Decimal(self.last)]
            case syntax.Symbol():
                return [self.current]
            case syntax.Variable():
                if node.name not in self.variables:
                    raise errors.UndefinedObject(kind="jsonpath variable", name=node.name)
                return [self.variables[node.name]]
            case syntax.Sign():
                numbers = [self._number(item, node.operator) for item in self.unwrapped(node.operand)]
                return [-number if node.operator == "-" else number for number in numbers]
            case syntax.Arithmetic():
                return [self._calculate(node)]
            case syntax.Path():
                found = self.any(node.start)
                for step in node.steps:
                    found = [made for item in found for made in self._spent(self._step(step, item))]
                return found

    def _spent(self, found: list[Any]) -> list[Any]:
        self.budget.spend(1 + len(found))
        return found

    def unwrapped(self, node: syntax.Expression) -> list[Any]:
        found = self.items(node)
        return found if self.strict else [part for item in found for part in _parts(item)]

    def _number(self, item: Any, operator: str) -> Decimal:
        if not isinstance(item, Decimal):
            raise errors.JsonNumberNotFound(detail=f"operand of unary jsonpath operator {operator} is not a number")
        return item

    def _calculate(self, node: syntax.Arithmetic) -> Decimal:
        sides: list[Decimal] = []
        for name, operand in (("left", node.left), ("right", node.right)):
            found = self.unwrapped(operand)
            if len(found) != 1 or not isinstance(found[0], Decimal):
                detail = f"{name} operand of jsonpath operator {node.operator} is not a single numeric value"
                raise errors.SingletonRequired(detail=detail)
            sides.append(found[0])
        with localcontext(prec=_DIGITS):
            return _calculated(node.operator, *sides)

    # Steps.

    def _step(self, step: syntax.Step, item: Any) -> list[Any]:
        match step:
            case syntax.Key():
                return self._of_objects(item, lambda found: self._member(found, step.name), "member accessor")
            case syntax.EveryKey():
                return self._of_objects(item, lambda found: list(found.values()), "wildcard member accessor")
            case syntax.EveryElement():
                return self._elements(item, "wildcard array accessor")
            case syntax.Subscripts():
                return self._chosen(step, self._elements(item, "array accessor"))
            case syntax.Descent():
                return list(_descend(item, step))
            case syntax.Filter():
                parts = [item] if self.strict else _parts(item)
                return [part for part in parts if replace(self, current=part).truth(step.condition) is True]
            case syntax.Method():
                wholes = self.strict or step.name in ("type", "size")
                return [made for part in ([item] if wholes else _parts(item)) for made in self._call(step.name, part)]

    def _of_objects(self, item: Any, read: Callable[[dict[str, Any]], list[Any]], what: str) -> list[Any]:
        made: list[Any] = []
        for part in [item] if self.strict else _parts(item):
            if isinstance(part, dict):
                made += read(part)
            elif self.strict:
                raise errors.JsonMemberNotFound(detail=f"jsonpath {what} can only be applied to an object")
        return made

    def _member(self, found: dict[str, Any], name: str) -> list[Any]:
        if name not in found and self.strict:
            raise errors.JsonMemberNotFound(detail=f'JSON object does not contain key "{name}"')
        return [found[name]] if name in found else []

    def _elements(self, item: Any, what: str) -> list[Any]:
        if self.strict and not isinstance(item, list):
            raise errors.JsonArrayNotFound(detail=f"jsonpath {what} can only be applied to an array")
        return _parts(item)

    def _chosen(self, step: syntax.Subscripts, elements: Sequence[Any]) -> list[Any]:
        within = replace(self, last=len(elements) - 1)
        made: list[Any] = []
        for first, last in step.ranges:
            low = within._place(first)
            high = low if last is None else within._place(last)
            if self.strict and (low < 0 or high >= len(elements) or low > high):
                raise errors.JsonSubscriptError(detail="jsonpath array subscript is out of bounds")
            made += elements[max(low, 0) : max(high + 1, 0)]
        return made

    def _place(self, node: syntax.Expression) -> int:
        found = self.items(node)
        if len(found) != 1 or not isinstance(found[0], Decimal):
            raise errors.JsonSubscriptError(detail="jsonpath array subscript is not a single numeric value")
        return int(found[0])

    def _call(self, name: str, item: Any) -> list[Any]:
        match name:
            case "type":
                return [type_name(item)]
            case "size":
                return [Decimal(len(self._elements(item, "item method .size()")))]
            case "keyvalue":
                if not isinstance(item, dict):
                    detail = "jsonpath item method .keyvalue() can only be applied to an object"
                    raise errors.JsonObjectNotFound(detail=detail)
                return [{"id": Decimal(0), "key": key, "value": value} for key, value in _in_order(item)]
            case "datetime":
                return [_moment(item)]
            case _:
                return [_numeric(name, item)]

    # Predicates.

    def truth(self, node: syntax.Predicate) -> bool | None:
        match node:
            case syntax.PathJunction():
                return self._joined(node)
            case syntax.PathNegation():
                inner = self.truth(node.operand)
                return None if inner is None else not inner
            case syntax.PathIsUnknown():
                return self.truth(node.operand) is None
            case syntax.PathExists():
                found = self._sequence(node.operand, unwrap=False)
                return None if found is None else bool(found)
            case syntax.PathComparison():
                return self._each(node.left, node.right, lambda left, right: _compare(node.operator, left, right))
            case syntax.PathStartsWith():
                return self._each(node.operand, node.beginning, _starts_with)
            case syntax.PathLikeRegex():
                pattern = _marked(node)
                nothing = syntax.PathConstant(None)
                return self._each(
                    node.operand,
                    nothing,
                    lambda text, _: self.like(text, pattern) if isinstance(text, str) else None,
                )

    def _joined(self, node: syntax.PathJunction) -> bool | None:
        """AND or OR of truth values: a deciding one is enough, otherwise the result may be unknown."""
        decides = node.operator == "||"
        left = self.truth(node.left)
        if left is decides:
            return decides
        right = self.truth(node.right)
        return left if right is not decides and left is None else right

    def _sequence(self, node: syntax.Expression, unwrap: bool = True) -> list[Any] | None:
        try:
            return self.unwrapped(node) if unwrap else self.items(node)
        except (errors.DataError, errors.DivisionByZero):
            return None

    def _each(
        self, left: syntax.Expression, right: syntax.Expression, decide: Callable[[Any, Any], bool | None]
    ) -> bool | None:
        """Whether it holds for one pair; in strict mode all pairs must be comparable."""
        lefts, rights = self._sequence(left), self._sequence(right)
        if lefts is None or rights is None:
            return None
        found, unknown = False, False
        for one in lefts:
            self.budget.spend(1 + len(rights))
            for other in rights:
                held = decide(one, other)
                if held is None and self.strict:
                    return None
                if held and not self.strict:
                    return True
                found, unknown = found or bool(held), unknown or held is None
        return True if found else None if unknown else False


def type_name(item: Any) -> str:
    return next((name for kind, name in _TYPES if isinstance(item, kind)), "null")


def _parts(item: Any) -> list[Any]:
    return item if isinstance(item, list) else [item]


def _in_order(item: dict[str, Any]) -> list[tuple[str, Any]]:
    """In jsonb's order of keys."""
    return sorted(item.items(), key=lambda member: (len(member[0].encode()), member[0].encode()))


def _descend(root: Any, step: syntax.Descent) -> Iterator[Any]:
    """Without recursion: every item of a deep document would pass through all levels above it."""
    waiting = [(root, 0)]
    while waiting:
        item, depth = waiting.pop()
        children = [value for _, value in _in_order(item)] if isinstance(item, dict) else item
        inner = children if isinstance(children, list) else []
        # `last` is a level with nothing below it.
        is_leaf = not inner
        above = (step.least is None and not is_leaf) or (step.least is not None and depth < step.least)
        below = step.most is not None and depth > step.most
        if not above and not below:
            yield item
        if step.most is None or depth < step.most:
            waiting += [(child, depth + 1) for child in reversed(inner)]


def _calculated(operator: str, left: Decimal, right: Decimal) -> Decimal:
    try:
        match operator:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case _:
                if not right:
                    raise errors.DivisionByZero()
                return left % right if operator == "%" else _quotient(left, right)
    except InvalidOperation:
        raise errors.NumericValueOutOfRange(type="numeric", value=f"{left} {operator} {right}") from None


def _quotient(left: Decimal, right: Decimal) -> Decimal:
    with localcontext(prec=20):
        return left / right


def _numeric(name: str, item: Any) -> Decimal:
    if name == "double" and isinstance(item, str):
        try:
            item = Decimal(repr(float(item)))
        except ValueError:
            item = None
    if not isinstance(item, Decimal) or not item.is_finite():
        detail = f"jsonpath item method .{name}() can only be applied to a numeric value"
        raise errors.JsonNumberRequired(detail=detail)
    match name:
        case "abs":
            return abs(item)
        case "floor":
            return item.to_integral_value("ROUND_FLOOR")
        case "ceiling":
            return item.to_integral_value("ROUND_CEILING")
        case _:
            return item


def _moment(item: Any) -> dt.date:
    """A date, or a timestamp without a zone."""
    try:
        found = dt.datetime.fromisoformat(item) if len(item) > 10 else dt.date.fromisoformat(item)
    except (TypeError, ValueError):
        raise errors.InvalidJsonMoment(detail=f"datetime format is not recognized: {show_json(item)}") from None
    if isinstance(found, dt.datetime) and found.tzinfo is not None:
        raise errors.FeatureNotSupported(feature="a moment with a time zone in a jsonpath", instead="Compare in SQL.")
    return found


def _starts_with(text: Any, beginning: Any) -> bool | None:
    return text.startswith(beginning) if isinstance(text, str) and isinstance(beginning, str) else None


def _marked(node: syntax.PathLikeRegex) -> str:
    if "q" in node.flags:
        return f"(?i)\\Q{node.pattern}\\E" if "i" in node.flags else f"\\Q{node.pattern}\\E"
    if not set(node.flags) <= _FLAGS:
        raise errors.FeatureNotSupported(
            feature=f'like_regex with flag "{node.flags}"', instead="The supported flags are i, s, m and q."
        )
    return f"(?{node.flags}){node.pattern}" if node.flags else node.pattern


def _compare(operator: str, left: Any, right: Any) -> bool | None:
    if isinstance(left, dt.date) and isinstance(right, dt.date):
        left, right = (_as_moment(side) for side in (left, right))
    elif left is None or right is None:
        if left is not right:
            return operator == "!="
        left = right = False
    elif type(left) is not type(right) or isinstance(left, list | dict):
        return None
    elif isinstance(left, str) and operator not in ("==", "!="):
        left, right = left.encode(), right.encode()
    match operator:
        case "==":
            return bool(left == right)
        case "!=":
            return bool(left != right)
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
        case _:
            return bool(left >= right)


def _as_moment(value: dt.date) -> dt.datetime:
    return value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day)

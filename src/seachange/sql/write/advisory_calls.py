"""SELECT pg_advisory_lock(...) and similar calls: the engine makes the calls in order. DuckDB never sees them; it
computes their arguments if necessary, and the expressions around their results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from seachange import errors
from seachange.model.ids import KeyHash
from seachange.model.locking import AdvisoryCall, AdvisoryVerb, LockStrength
from seachange.sql.bind.output_names import output_names
from seachange.sql.compile.template import Template, compile_template
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.duck.operands import check_argument_count
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Result, ResultColumn
from seachange.sql.query.query import describe_query, run_query
from seachange.storage.keys import advisory_hash
from seachange.values.coercion import coercer
from seachange.values.types import BIGINT, Kind, SqlType

_LOCK, _TRY, _UNLOCK = AdvisoryVerb.LOCK, AdvisoryVerb.TRY, AdvisoryVerb.UNLOCK
_SHARED = LockStrength.SHARE
FUNCTIONS: dict[str, AdvisoryCall] = {
    "pg_advisory_lock": AdvisoryCall(_LOCK),
    "pg_advisory_lock_shared": AdvisoryCall(_LOCK, _SHARED),
    "pg_try_advisory_lock": AdvisoryCall(_TRY),
    "pg_try_advisory_lock_shared": AdvisoryCall(_TRY, _SHARED),
    "pg_advisory_xact_lock": AdvisoryCall(_LOCK, of_session=False),
    "pg_advisory_xact_lock_shared": AdvisoryCall(_LOCK, _SHARED, of_session=False),
    "pg_try_advisory_xact_lock": AdvisoryCall(_TRY, of_session=False),
    "pg_try_advisory_xact_lock_shared": AdvisoryCall(_TRY, _SHARED, of_session=False),
    "pg_advisory_unlock": AdvisoryCall(_UNLOCK),
    "pg_advisory_unlock_shared": AdvisoryCall(_UNLOCK, _SHARED),
    "pg_advisory_unlock_all": AdvisoryCall(AdvisoryVerb.UNLOCK_ALL),
}
# The others return void, which clients see as an empty text.
_GIVE_BOOLEAN = frozenset({_TRY, _UNLOCK})
# One bigint or two ints: different key spaces.
_KEY_TYPES = {1: BIGINT, 2: SqlType(Kind.INTEGER)}
# What may enclose a call: the call is made once in any case.
_AROUND = (exp.Alias, exp.Cast, exp.Paren, exp.Not, exp.Is, exp.Dot)


@dataclass(frozen=True, slots=True)
class _Made:
    """A call in the select list; its arguments are the `first`-th and following of all."""

    call: AdvisoryCall
    first: int
    width: int

    def run(self, port: TransactionPort, arguments: Sequence[Any]) -> bool | str | None:
        given = arguments[self.first : self.first + self.width]
        # Like all strict functions of PostgreSQL.
        if None in given:
            return None
        done = port.locks.advise(self.call, _key(given) if given else None)
        return done if self.call.verb in _GIVE_BOOLEAN else ""


def calls_advisory(tree: exp.Expr) -> bool:
    return any(True for _ in _find_calls(tree))


class AdvisorySelect:
    def __init__(self, tree: exp.Query) -> None:
        query = tree.copy()
        if not isinstance(query, exp.Select) or set(_clauses(query)) - {"expressions"}:
            raise errors.FeatureNotSupported(
                feature="an advisory lock in a query of rows", instead="Use SELECT pg_advisory_lock(...) alone."
            )
        self._expected = max((int(p.this.name) for p in query.find_all(exp.Parameter)), default=0)
        names = output_names(query)
        arguments: list[exp.Expr] = []
        self._calls: list[_Made] = []
        for node in list(_find_calls(query)):
            self._calls.append(_read_call(node, arguments))
            result = exp.Parameter(this=exp.Literal.number(self._expected + len(self._calls)))
            is_boolean = self._calls[-1].call.verb in _GIVE_BOOLEAN
            whole = node.parent if isinstance(node.parent, exp.Dot) else node
            whole.replace(exp.cast(result, exp.DType.BOOLEAN if is_boolean else exp.DType.TEXT))
        for projection, name in zip(list(query.expressions), names or (), strict=True):
            if not isinstance(projection, exp.Alias):
                projection.replace(exp.alias_(projection.copy(), name, quoted=True))
        self._template: Template = compile_template(query)
        self._arguments = compile_template(exp.Select(expressions=arguments)) if arguments else None

    def is_current(self, port: TransactionPort) -> bool:
        return True

    def describe(self, port: TransactionPort, duck: DuckSession, samples: Sequence[Any]) -> tuple[ResultColumn, ...]:
        return describe_query(self._template, port, duck, [*samples, *(None for _ in self._calls)])

    def run(self, port: TransactionPort, duck: DuckSession, values: Sequence[Any]) -> Result:
        check_argument_count(self._expected, values)
        arguments: Sequence[Any] = ()
        if self._arguments is not None:
            used = max(self._arguments.parameters, default=0)
            arguments = run_query(self._arguments, port, duck, values[:used]).rows[0]
        results = [call.run(port, arguments) for call in self._calls]
        return run_query(self._template, port, duck, [*values, *results])


def _find_calls(tree: exp.Expr) -> Iterator[exp.Anonymous]:
    return (node for node in tree.find_all(exp.Anonymous, bfs=False) if node.name.lower() in FUNCTIONS)


def _clauses(query: exp.Select) -> Iterator[str]:
    return (key for key, value in query.args.items() if value)


def _read_call(node: exp.Anonymous, arguments: list[exp.Expr]) -> _Made:
    around = node.parent
    while isinstance(around, _AROUND):
        around = around.parent
    if not isinstance(around, exp.Select) or around.parent is not None:
        raise errors.FeatureNotSupported(
            feature="an advisory lock inside of an expression", instead="Select it as a column of its own."
        )
    name = node.name.lower()
    call = FUNCTIONS[name]
    width = len(node.expressions)
    widths = (0,) if call.verb is AdvisoryVerb.UNLOCK_ALL else tuple(_KEY_TYPES)
    if width not in widths:
        raise errors.UndefinedFunction(detail=f"function {name} with {width} arguments does not exist")
    arguments += [argument.copy() for argument in node.expressions]
    return _Made(call, len(arguments) - width, width)


def _key(given: Sequence[Any]) -> KeyHash:
    convert = coercer(_KEY_TYPES[len(given)])
    return advisory_hash(tuple(convert(value) for value in given))

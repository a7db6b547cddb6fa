"""Prepared statements and their execution in a transaction.

A text is parsed once per process; its plan is cached with it, and compiled again when a table that it uses has changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from sqlglot import exp

from seachange import errors
from seachange.model.relation import RelationName
from seachange.model.schema.temporary import OWN_SCHEMA
from seachange.model.statements import (
    CreateMaterializedView,
    CreateTableAs,
    CreateTemporary,
    CreateView,
    DdlStatement,
    Explain,
    RefreshView,
    RoleStatement,
    ShapeStatement,
)
from seachange.runtime.nonblocking import may_wait
from seachange.sql.change.command_tags import command_tag, role_tag
from seachange.sql.change.create_as import run_create_as
from seachange.sql.change.like import expand_likes
from seachange.sql.change.materialized import fill_view, is_skipped
from seachange.sql.change.roles import run_role
from seachange.sql.change.schema_change import run_ddl
from seachange.sql.change.session_names import resolve_session_names
from seachange.sql.change.shapes import run_shape, shape_tag
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.duck.operands import Argument, read_operand
from seachange.sql.parsing.mentions import NOTHING, Mentions, mentions_of
from seachange.sql.parsing.parse import Parsed, TreeStatement, parse_script, parse_texts
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Result, RowSink
from seachange.sql.query.databases import check_named_databases
from seachange.sql.query.fast_select import simple_target
from seachange.sql.query.filled_lists import FilledLists, fill_lists
from seachange.sql.query.parameter_types import parameter_types
from seachange.sql.query.plan import StatementPlan
from seachange.sql.run.explain import run_explain
from seachange.sql.text.constants import take_constants
from seachange.sql.text.list_places import place_lists
from seachange.sql.text.long_lists import ListShape, LongList, TakenLists, take_lists
from seachange.sql.text.positions import StatementOrigin
from seachange.sql.text.sequence_names import find_calls
from seachange.sql.write.dml import Select, compile_plan, takes_constants
from seachange.sql.write.with_changes import changing_queries
from seachange.values.coercion import check_characters
from seachange.values.timezone import session_zone
from seachange.values.types import SqlType

_PREPARED_MAX = 2048
# Longer texts contain data rather than a statement that is repeated: they are not cached.
KEPT_CHARS_MAX = 10_000
# In longer texts no constants are looked for.
SHARED_CHARS_MAX = 1_000
# How many lists of parameter types of one text have plans.
_TYPED_MAX = 16
_SHARED = ("select", "insert", "update", "delete")


class Prepared:
    """One parsed statement. `plan` is shared by all sessions: it is replaced, never changed. `is_definition` is true
    for DDL and for EXPLAIN of DDL; other statements read or write rows."""

    __slots__ = (
        *("_mentions", "_shows_rows", "_typed", "command", "constants", "has_lists", "is_definition", "is_query"),
        *("lists", "origin", "parsed", "pattern", "plan", "shared", "text", "types", "writes"),
    )

    def __init__(self, parsed: Parsed, text: str = "", origin: StatementOrigin | None = None) -> None:
        self.parsed = parsed
        self.text = text
        self.origin = origin or StatementOrigin(text)
        # The statement with parameters in the places of these constants, from which it was made without parsing it.
        self.pattern: Pattern | None = None
        self.constants: tuple[Any, ...] = ()
        # The long lists that were taken out of its text, and the statement whose plan it shares with other lists.
        self.lists: FilledLists | None = None
        self.shared: Prepared | None = None
        self.has_lists = False
        # With the time zone in which its constants were read, and the types of its parameters if it has long lists.
        self.plan: tuple[StatementPlan, str, tuple[SqlType | None, ...]] | None = None
        self.is_definition = _is_definition(parsed)
        self.command = _command(parsed)
        self.writes = _is_writing(parsed) or (bool(self.command) and self.command != "SELECT")
        # It neither changes nor locks rows, but may draw from sequences.
        self.is_query = self.command == "SELECT" and isinstance(parsed, TreeStatement) and not _is_changing(parsed)
        self._mentions: Mentions | None = None
        self._shows_rows: bool | None = None
        # The types of parameters that the client has declared; and the statement with others.
        self.types: tuple[SqlType | None, ...] = ()
        self._typed: dict[tuple[SqlType | None, ...], Prepared] = {}

    def with_types(self, types: Sequence[SqlType | None]) -> Prepared:
        """The statement with declared parameter types: a query has a plan for each list of them."""
        if not self.is_query or not any(types):
            return self
        if self.lists is not None and self.shared is not None:
            declared = self.lists.declare(types)
            if declared is None:
                return _as_written(self).with_types(types)
            return self.shared.with_types(declared).with_lists(self.lists, self.text)
        key = tuple(types)
        found = self._typed.get(key)
        if found is None:
            found = copy(self)
            found.types, found.plan = key, None
            if len(self._typed) >= _TYPED_MAX:
                self._typed.clear()
            self._typed[key] = found
        return found

    def with_lists(self, lists: FilledLists, text: str) -> Prepared:
        """The statement with these lists, which shares its plan."""
        # What is read of the tree is read once.
        _ = self.mentions
        found = copy(self)
        found.text, found.lists, found.shared = text, lists, self
        # Places are those of the text without the lists.
        found.origin = StatementOrigin("")
        return found

    @property
    def mentions(self) -> Mentions:
        """The tables whose rows it reads or writes, and what it needs of them."""
        if self._mentions is None:
            self._mentions = NOTHING if self.is_definition else mentions_of(self.parsed)
        return self._mentions

    @property
    def is_ordered(self) -> bool:
        """Whether it has an ORDER BY."""
        return isinstance(self.parsed, TreeStatement) and self.parsed.tree.args.get("order") is not None

    @property
    def shows_rows(self) -> bool:
        """Whether what its client gets, rows or how many there were, depends on rows that it does not name one by one:
        not a change of the row with a given key, nor new rows that it brings itself."""
        if self._shows_rows is None:
            self._shows_rows = self._find_shown()
        return self._shows_rows

    def _find_shown(self) -> bool:
        if not isinstance(self.parsed, TreeStatement):
            return False
        tree = self.parsed.tree
        if self.command == "SELECT":
            return tree.find(exp.Table) is not None
        if isinstance(tree, exp.Insert):
            brings = isinstance(tree.expression, exp.Values)
            return not brings or (tree.args.get("conflict") is not None and tree.args.get("returning") is not None)
        if not isinstance(tree, exp.Update | exp.Delete) or tree.args.get("returning") is not None:
            return True
        return bool(tree.args.get("from_") or tree.args.get("using")) or not _is_of_values(tree.args.get("where"))

    @property
    def is_brief(self) -> bool:
        """Whether its result is one row, found by its key, that is likely to be in memory."""
        return self.plan is not None and isinstance(self.plan[0], Select) and self.plan[0].is_by_key


def _is_of_values(where: exp.Expr | None) -> bool:
    """Whether a condition says which values columns have, and nothing else."""
    if where is None:
        return False
    condition = where.this
    return all(
        isinstance(each, exp.EQ)
        and isinstance(each.this, exp.Column)
        and each.expression.find(exp.Column, exp.Query) is None
        for each in (condition.flatten() if isinstance(condition, exp.And) else (condition,))
    )


def _is_of_operands(tree: exp.Expr) -> bool:
    """Whether each parameter of a statement is a value of a row, or what a column is compared with, set to or changed
    by: nowhere else does a parameter mean what a constant would."""
    if any(tree.args.get(clause) for clause in ("with_", "returning", "conflict", "using")):
        return False
    match tree:
        case exp.Insert(expression=exp.Values(expressions=rows)):
            places = [cell for row in rows for cell in (row.expressions if isinstance(row, exp.Tuple) else (row,))]
        case exp.Select() if simple_target(tree) is not None and _is_of_values(tree.args.get("where")):
            places = _compared(tree)
        case exp.Update() if tree.args.get("from_") is None and _is_of_values(tree.args.get("where")):
            places = [*_compared(tree), *(_assigned(item) for item in tree.expressions)]
        case exp.Delete() if _is_of_values(tree.args.get("where")):
            places = _compared(tree)
        case _:
            return False
    held = sum(isinstance(read_operand(place), Argument) for place in places)
    return held == sum(1 for _ in tree.find_all(exp.Parameter))


def _compared(tree: exp.Expr) -> list[exp.Expr]:
    """What the columns in the condition of a statement are compared with."""
    return [each.expression for each in tree.args["where"].find_all(exp.EQ)]


def _assigned(item: exp.Expr) -> exp.Expr:
    """What a column is set to, or what is added to it or subtracted from it."""
    value: exp.Expr = item.expression if isinstance(item, exp.EQ) else item
    return value.expression if isinstance(value, exp.Add | exp.Sub) else value


def _is_writing(parsed: Parsed) -> bool:
    """Whether a query locks rows, draws from a sequence, or changes rows in its WITH."""
    if not isinstance(parsed, TreeStatement):
        return False
    return _is_changing(parsed) or any(True for _ in find_calls(parsed.tree))


def _is_changing(parsed: TreeStatement) -> bool:
    return bool(changing_queries(parsed.tree)) or bool(parsed.tree.args.get("locks"))


def _command(parsed: Parsed) -> str:
    if isinstance(parsed, TreeStatement):
        return parsed.command
    if isinstance(parsed, Explain) and parsed.analyze:
        # EXPLAIN ANALYZE runs the statement, so a read-only transaction rejects it.
        (explained, *_) = parse_script(parsed.query)
        return _command(explained)
    if isinstance(parsed, RoleStatement):
        return role_tag(parsed)
    if isinstance(parsed, ShapeStatement):
        return shape_tag(parsed)
    if isinstance(parsed, CreateTemporary):
        return _command(parsed.create)
    if isinstance(parsed, CreateTableAs):
        return "CREATE TABLE AS"
    return command_tag(parsed) if isinstance(parsed, DdlStatement) else ""


def _is_definition(parsed: Parsed) -> bool:
    return parsed.ddl is not None if isinstance(parsed, Explain) else not isinstance(parsed, TreeStatement)


class Pattern:
    """Statements that differ only in their constants. They share a plan if it treats a parameter as it treats a
    constant; else each of them is compiled as it is."""

    __slots__ = ("_prepared", "is_known", "is_proven", "is_shared", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        # Parsed when it is met again: most texts are not repeated with other constants.
        self.is_known = False
        self.is_shared = True
        self.is_proven = False
        self._prepared: Prepared | None = None

    @property
    def prepared(self) -> Prepared | None:
        if self._prepared is None and self.is_shared:
            try:
                (self._prepared,) = _prepare(self.text)
                parsed = self._prepared.parsed
                self.is_shared = isinstance(parsed, TreeStatement) and _is_of_operands(parsed.tree)
            except (errors.Error, ValueError):
                # The text as it is has its own error, or more than one statement.
                self.is_shared = False
        return self._prepared if self.is_shared else None

    def fill(self, text: str, constants: tuple[Any, ...], skipped: int) -> Prepared | None:
        """None if the text is to be parsed; `skipped` characters were before it."""
        if not self.is_known:
            self.is_known = True
            return None
        prepared = self.prepared
        if prepared is None:
            return None
        # What is read of the tree is read once.
        _ = prepared.mentions
        filled = copy(prepared)
        filled.text, filled.pattern, filled.constants = text, self, constants
        filled.origin = StatementOrigin(text, 0, skipped)
        return filled


_pattern = lru_cache(maxsize=_PREPARED_MAX)(Pattern)


def prepare_pattern(text: str) -> Prepared | None:
    """The statement of a text without parameters, if it can share its plan with others."""
    if len(text) > SHARED_CHARS_MAX or text.lstrip()[:6].lower() not in _SHARED:
        return None
    check_characters(text)
    pattern, constants = take_constants(text)
    if not constants:
        return None
    return _pattern(pattern).fill(text.strip().rstrip("; \n"), constants, len(text) - len(text.lstrip()))


def prepare(text: str) -> tuple[Prepared, ...]:
    taken = take_lists(text)
    if taken is not None and (found := _prepare_taken(text, taken)) is not None:
        return found
    return _prepare_kept(text) if len(text) <= KEPT_CHARS_MAX else _prepare(text)


def _as_written(prepared: Prepared) -> Prepared:
    """The statement of a text, parsed with its long lists."""
    (found,) = _prepare(prepared.text)
    return found


def _prepare_taken(text: str, taken: TakenLists) -> tuple[Prepared, ...] | None:
    """The statements of a text from which long lists were taken; None if it is to be parsed as it is."""
    check_characters(text)
    parse = _parse_kept if len(taken.text) <= KEPT_CHARS_MAX else _parse_taken
    shared = parse(taken.text, tuple([each.shape for each in taken.lists]))
    if shared is None:
        return None
    own = text.strip().rstrip("; \n") if len(shared) == 1 else ""
    return tuple([_filled(each, taken.lists, own) for each in shared])


def _filled(shared: Prepared, lists: Sequence[LongList], text: str) -> Prepared:
    assert isinstance(shared.parsed, TreeStatement)
    found = fill_lists(shared.parsed.tree, lists)
    if not found.lists:
        return shared
    return shared.with_types(found.declare(()) or ()).with_lists(found, text or shared.text)


def _parse_taken(text: str, shapes: tuple[ListShape, ...]) -> tuple[Prepared, ...] | None:
    numbers = {shape.number: shape for shape in shapes}
    found = []
    try:
        for parsed, own in parse_texts(text):
            tree = place_lists(parsed.tree, numbers) if isinstance(parsed, TreeStatement) else None
            if not isinstance(parsed, TreeStatement) or tree is None:
                return None
            prepared = Prepared(replace(parsed, tree=tree), own.strip().rstrip("; \n"))
            prepared.has_lists = True
            found.append(prepared)
    except (errors.SyntaxProblem, errors.FeatureNotSupported):
        # The text as it is has its own error.
        return None
    return tuple(found)


_parse_kept = lru_cache(maxsize=_PREPARED_MAX)(_parse_taken)


def _prepare(text: str) -> tuple[Prepared, ...]:
    check_characters(text)
    return tuple(
        Prepared(parsed, own.strip().rstrip("; \n"), StatementOrigin(text, number))
        for number, (parsed, own) in enumerate(parse_texts(text))
    )


_prepare_kept = lru_cache(maxsize=_PREPARED_MAX)(_prepare)


def run_statement(
    prepared: Prepared,
    port: TransactionPort,
    duck: DuckSession,
    values: Sequence[Any],
    notices: list[str],
    sink: RowSink | None = None,
) -> Result:
    """Runs a query, DML or DDL statement; if it fails, all its writes are undone. Large results go to `sink`."""
    mark = port.undo.mark()
    duck.serve(port)
    try:
        check_named_databases(prepared.parsed, port)
        if isinstance(prepared.parsed, TreeStatement):
            return _run_tree(prepared, prepared.parsed, port, duck, values, sink)
        if isinstance(prepared.parsed, Explain):
            return run_explain(prepared.parsed, port, duck, values)
        if isinstance(prepared.parsed, RoleStatement):
            run = partial(run_ddl, text=prepared.text, port=port, duck=duck, notices=notices)
            return run_role(resolve_session_names(prepared.parsed, port), port, run, notices)
        if isinstance(prepared.parsed, ShapeStatement):
            return run_shape(prepared.parsed, port, notices)
        if isinstance(prepared.parsed, CreateTemporary):
            created = prepared.parsed.create
            port.statement.begin_temporary()
            result = _run_definition(created, prepared.text, port, duck, notices)
            if not isinstance(created, CreateView):
                table = port.names.table(OWN_SCHEMA, created.table.name)
                port.statement.note_temporary(table, prepared.parsed.on_commit)
            return result
        return _run_definition(prepared.parsed, prepared.text, port, duck, notices)  # type: ignore[arg-type]
    except BaseException:
        port.undo.reset(mark)
        raise
    finally:
        duck.serve(None)


def _run_definition(
    statement: DdlStatement | CreateTableAs, text: str, port: TransactionPort, duck: DuckSession, notices: list[str]
) -> Result:
    if isinstance(statement, CreateView) and statement.name.schema is None and _reads_temporary(statement, port):
        notices.append(f'view "{statement.name}" will be a temporary view')
        statement = replace(statement, name=RelationName(OWN_SCHEMA, statement.name.name))
    statement = resolve_session_names(statement, port)
    if isinstance(statement, CreateTableAs):
        return run_create_as(statement, port, duck, notices)
    first, *others = expand_likes(statement, port)
    is_filled = not is_skipped(first, port)
    result = run_ddl(first, text, port, duck, notices)
    if is_filled and isinstance(first, CreateMaterializedView | RefreshView):
        result = fill_view(first, result, port, duck)
    for other in others:
        run_ddl(other, text, port, duck, notices)
    return result


def _run_tree(
    prepared: Prepared,
    statement: TreeStatement,
    port: TransactionPort,
    duck: DuckSession,
    values: Sequence[Any],
    sink: RowSink | None,
) -> Result:
    if prepared.pattern is not None:
        plan = _shared_plan(prepared.pattern.prepared or prepared, statement.tree, port)
        if plan is not None and takes_constants(plan, prepared.constants):
            prepared.pattern.is_proven = True
            return plan.run(port, duck, prepared.constants)
        # Other constants may be fit.
        prepared.pattern.is_shared = prepared.pattern.is_proven
        (prepared,) = prepare(prepared.text)
        assert isinstance(prepared.parsed, TreeStatement)
        statement = prepared.parsed
    plan, types = _current_plan(prepared.shared or prepared, statement.tree, port)
    if prepared.lists is not None and not any(type_ is not None and type_.enum for type_ in types):
        values = prepared.lists.fill(values, types)
    elif prepared.lists is not None:
        # Labels are read where they stand.
        written = _as_written(prepared)
        assert isinstance(written.parsed, TreeStatement)
        plan, _ = _current_plan(written, written.parsed.tree, port)
    if isinstance(plan, Select):
        return plan.run(port, duck, values, sink)
    return plan.run(port, duck, values)


def _shared_plan(prepared: Prepared, tree: exp.Expr, port: TransactionPort) -> StatementPlan | None:
    """None if there is none: the statement as it is has a plan, or an error of its own."""
    try:
        return _current_plan(prepared, tree, port)[0]
    except errors.Error:
        return None


def _current_plan(
    prepared: Prepared, tree: exp.Expr, port: TransactionPort
) -> tuple[StatementPlan, tuple[SqlType | None, ...]]:
    """With the types of its parameters if it has long lists."""
    zone = session_zone()
    plan, made_in, types = prepared.plan if prepared.plan is not None else (None, zone, ())
    if plan is None or made_in != zone or not plan.is_current(port):
        # Compiling takes longer than handing over to a thread. Sessions for which one text means different things
        # compile it each time.
        may_wait()
        try:
            plan = compile_plan(tree, port, prepared.types)
            types = parameter_types(tree, port, prepared.types) if prepared.has_lists else ()
            prepared.plan = plan, zone, types
        except RecursionError:
            raise errors.StatementTooComplex() from None
    return plan, types


def _reads_temporary(view: CreateView, port: TransactionPort) -> bool:
    own = port.statement.temporary_schema
    return own is not None and any(_is_within(name, own, port) for name in view.relations)


def _is_within(name: RelationName, schema: str, port: TransactionPort) -> bool:
    try:
        return port.names.relation(name.schema, name.name).schema == schema
    except errors.UndefinedTable:
        return False

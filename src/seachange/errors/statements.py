"""Errors in a statement: its syntax, the objects that it names, privileges, limits."""

from __future__ import annotations

from typing import ClassVar

from seachange.errors.families import NotSupportedError, OperationalError, ProgrammingError


class SyntaxProblem(ProgrammingError):
    sqlstate = "42601"
    message = "syntax error: {detail}"


class FeatureNotSupported(NotSupportedError):
    message = "{feature} is not supported"
    hint_text = "{instead}"


class NotMappable(NotSupportedError):
    message = 'table "{table}" cannot be read as an Iceberg table: {reason}'


class UndefinedTable(ProgrammingError):
    sqlstate = "42P01"
    message = 'relation "{name}" does not exist'


class WrongObjectType(ProgrammingError):
    sqlstate = "42809"
    message = '"{name}" is not a {kind}'


class NotWritable(ProgrammingError):
    sqlstate = "42809"
    message = 'cannot change materialized view "{name}"'
    hint = "REFRESH MATERIALIZED VIEW replaces its rows."


class NotLockable(ProgrammingError):
    sqlstate = "42809"
    message = 'cannot lock relation "{name}"'
    detail_text = "This operation is not supported for sequences."


class NotDeferrable(ProgrammingError):
    sqlstate = "42809"
    message = 'constraint "{constraint}" is not deferrable'
    hint_text = "Only foreign keys declared DEFERRABLE can be deferred."


class DuplicateTable(ProgrammingError):
    sqlstate = "42P07"
    message = 'relation "{name}" already exists'


class UndefinedColumn(ProgrammingError):
    sqlstate = "42703"
    message = 'column "{name}" of relation "{relation}" does not exist'


class DuplicateColumn(ProgrammingError):
    sqlstate = "42701"
    message = 'column "{name}" specified more than once'


class SystemColumnName(ProgrammingError):
    sqlstate = "42701"
    message = 'column name "{name}" conflicts with a system column name'


class GeneratedAlways(ProgrammingError):
    sqlstate = "428C9"
    message = 'cannot {action} column "{column}": it is {kind}'
    hint_text = "Write DEFAULT for it, or omit the column."


class UndefinedObject(ProgrammingError):
    sqlstate = "42704"
    message = '{kind} "{name}" does not exist'


class InvalidTableDefinition(ProgrammingError):
    sqlstate = "42P16"
    message = 'table "{name}": {detail}'


class InvalidColumnDefinition(ProgrammingError):
    sqlstate = "42611"
    message = 'column "{name}": {detail}'


class InvalidSchemaName(ProgrammingError):
    sqlstate = "3F000"
    message = 'schema "{name}" does not exist'


class NoSchemaSelected(ProgrammingError):
    sqlstate = "3F000"
    message = "no schema has been selected to create in"
    hint_text = "None of the schemas in search_path exists."


class DuplicateSchema(ProgrammingError):
    sqlstate = "42P06"
    message = 'schema "{name}" already exists'


class InvalidDatabaseName(ProgrammingError):
    sqlstate = "3D000"
    message = 'database "{name}" does not exist'


class DuplicateDatabase(ProgrammingError):
    sqlstate = "42P04"
    message = 'database "{name}" already exists'


class InvalidColumnChange(ProgrammingError):
    sqlstate = "42601"
    message = 'column "{name}" of relation "{relation}" {detail}'


class ReservedName(ProgrammingError):
    sqlstate = "42939"
    message = 'unacceptable name "{name}": {detail}'


class InvalidName(ProgrammingError):
    sqlstate = "42602"
    message = 'invalid name "{name}": {detail}'


class DuplicateObject(ProgrammingError):
    sqlstate = "42710"
    message = '{kind} "{name}" already exists'


class UnresolvedColumn(ProgrammingError):
    sqlstate = "42703"
    message = "{detail}"


class UnresolvedTable(ProgrammingError):
    sqlstate = "42P01"
    message = "{detail}"


class AmbiguousColumn(ProgrammingError):
    sqlstate = "42702"
    message = "{detail}"


class DuplicateAlias(ProgrammingError):
    sqlstate = "42712"
    message = "{detail}"


class UndefinedFunction(ProgrammingError):
    sqlstate = "42883"
    message = "{detail}"


class UndefinedProcedure(ProgrammingError):
    sqlstate = "42883"
    message = "procedure {name} does not exist"
    hint_text = (
        "There are seachange.import_table, seachange.export_iceberg and seachange.advance_feed; their arguments are "
        "constant texts."
    )


class AmbiguousFunction(ProgrammingError):
    sqlstate = "42725"
    message = "{detail}"


class GroupingProblem(ProgrammingError):
    sqlstate = "42803"
    message = "{detail}"


class WindowingProblem(ProgrammingError):
    sqlstate = "42P20"
    message = "{detail}"


class InvalidConflictTarget(ProgrammingError):
    sqlstate = "42P10"
    message = "there is no unique or exclusion constraint matching the ON CONFLICT specification"


class InvalidColumnReference(ProgrammingError):
    sqlstate = "42P10"
    message = "{detail}"


class StatementTooComplex(ProgrammingError):
    sqlstate = "54001"
    message = "the statement is nested too deeply"


class StatementTooLong(StatementTooComplex):
    message = "the {text} has more than {count_max} words, constants and symbols"
    hint_text = "Send many values as one array parameter (= ANY($1)), many rows by COPY, long scripts in parts."


class ProgramLimitExceeded(OperationalError):
    sqlstate = "54000"
    message = "{detail}"


class StatementRefused(ProgrammingError):
    sqlstate = "42000"
    message = "{detail}"


class DependentObjectsExist(ProgrammingError):
    sqlstate = "2BP01"
    message = "cannot drop {what} because other objects depend on it"
    detail_text: ClassVar[str | None] = "{dependents}"
    hint_text: ClassVar[str | None] = "Use DROP ... CASCADE to drop the dependent objects too."


class ShapeInUse(DependentObjectsExist):
    message = "cannot drop shape {name} because programs are pinned to it"
    hint_text: ClassVar[str | None] = "Reset seachange.layout of these roles, and end these sessions, first."


class DependentChanges(DependentObjectsExist):
    message = "cannot revert change {change} because later changes depend on it"
    hint_text = "REVERT CHANGE {change} CASCADE reverts them too."


class RequiredObject(DependentObjectsExist):
    message = "cannot drop {what} because {owner} requires it"
    detail_text = None
    hint_text = "You can drop {owner} instead."


class ValueNeeded(DependentObjectsExist):
    message = "cannot drop {what}: {dependent} depends on it"
    detail_text = None
    hint_text = None


class RoleNeeded(DependentObjectsExist):
    message = 'role "{name}" cannot be dropped because some objects depend on it'
    hint_text = "Run REASSIGN OWNED and DROP OWNED for the role first."


class InvalidObjectDefinition(ProgrammingError):
    sqlstate = "42P17"
    message = "{detail}"


class InvalidGrant(ProgrammingError):
    sqlstate = "0LP01"
    message = "invalid privilege type {privilege} for {kind}"


class InvalidGrantOption(ProgrammingError):
    sqlstate = "0LP01"
    message = "{detail}"


class InvalidForeignKey(ProgrammingError):
    sqlstate = "42830"
    message = "{detail}"


class CannotCoerce(ProgrammingError):
    sqlstate = "42846"
    message = "cannot cast type {source} to {target}"


class DatatypeMismatch(ProgrammingError):
    sqlstate = "42804"
    message = "{detail}"


class NotAssignable(DatatypeMismatch):
    message = 'column "{column}" is of type {type} but expression is of type {given}'
    hint_text = "You will need to rewrite or cast the expression."


class InvalidAuthorization(OperationalError):
    sqlstate = "28000"
    message = "{detail}"


class InsufficientPrivilege(ProgrammingError):
    sqlstate = "42501"
    message = "{detail}"


class SessionNotYours(InsufficientPrivilege):
    message = "permission denied to {action}"

    def __init__(self, action: str, reason: str) -> None:
        super().__init__(action=action)
        self.detail = reason


class WrongParameterCount(ProgrammingError):
    sqlstate = "08P01"
    message = "the statement requires {expected} parameters, but {given} were given"

"""Errors of values: invalid input, values out of range, constraint violations."""

from __future__ import annotations

from seachange.errors.families import DataError, IntegrityError


class InvalidTextRepresentation(DataError):
    sqlstate = "22P02"
    message = 'invalid input syntax for type {type}: "{value}"'


class InvalidCidr(DataError):
    sqlstate = "22P02"
    message = 'invalid cidr value: "{value}"'
    hint = "Bits behind the mask must be zero; network() clears them."


class NumericValueOutOfRange(DataError):
    sqlstate = "22003"
    message = 'value "{value}" is out of range for type {type}'


class NoCounterpart(DataError):
    sqlstate = "22000"
    message = "{detail}"
    hint_text = "Read the other columns, or the table in its current shape."


class StringTooLong(DataError):
    sqlstate = "22001"
    message = "value too long for type {type}"


class CharacterNotInRepertoire(DataError):
    sqlstate = "22021"
    message = "a text value cannot contain a NUL character (code 0)"


class InvalidBinaryRepresentation(DataError):
    sqlstate = "22P03"
    message = "incorrect binary data format for type {type}"


class UntranslatableCharacter(DataError):
    sqlstate = "22P05"
    message = "\\u0000 cannot be converted to text"


class UnpairedSurrogate(DataError):
    sqlstate = "22021"
    message = "a text value cannot contain an unpaired surrogate, which is not a character"


class BadCopyFormat(DataError):
    sqlstate = "22P04"
    message = "line {line}: {detail}"


class InvalidEncoding(DataError):
    sqlstate = "22021"
    message = "line {line}: not valid UTF-8"


class InvalidDatetimeFormat(DataError):
    sqlstate = "22007"
    message = 'invalid input syntax for type {type}: "{value}"'


class DatetimeFieldOverflow(DataError):
    sqlstate = "22008"
    message = 'date/time field value out of range for type {type}: "{value}"'


class DivisionByZero(DataError):
    sqlstate = "22012"
    message = "division by zero"


class InvalidArgumentOfPower(DataError):
    sqlstate = "2201F"
    message = "{detail}"


class InvalidArgumentOfLogarithm(DataError):
    sqlstate = "2201E"
    message = "{detail}"


class SubstringError(DataError):
    sqlstate = "22011"
    message = "negative substring length not allowed"


class InvalidJsonMoment(DataError):
    sqlstate = "22031"
    message = "{detail}"


class JsonSubscriptError(DataError):
    sqlstate = "22033"
    message = "{detail}"


class JsonNumberRequired(DataError):
    sqlstate = "22036"
    message = "{detail}"


class SingletonRequired(DataError):
    sqlstate = "22038"
    message = "{detail}"


class JsonArrayNotFound(DataError):
    sqlstate = "22039"
    message = "{detail}"


class JsonMemberNotFound(DataError):
    sqlstate = "2203A"
    message = "{detail}"


class JsonNumberNotFound(DataError):
    sqlstate = "2203B"
    message = "{detail}"


class JsonObjectNotFound(DataError):
    sqlstate = "2203C"
    message = "{detail}"


class InvalidRegularExpression(DataError):
    sqlstate = "2201B"
    message = "invalid regular expression: {detail}"


class InvalidParameterValue(DataError):
    sqlstate = "22023"
    message = "{detail}"


class ArraySubscriptError(DataError):
    sqlstate = "2202E"
    message = "{detail}"


class NullValueNotAllowed(DataError):
    sqlstate = "22004"
    message = "{detail}"


class SequenceOutOfBounds(DataError):
    sqlstate = "22003"
    message = 'setval: value {value} is out of bounds for sequence "{name}" ({minimum}..{maximum})'


class SequenceExhausted(DataError):
    sqlstate = "2200H"
    message = 'nextval: reached {end} value of sequence "{name}" ({value})'


class CardinalityViolation(DataError):
    sqlstate = "21000"
    message = "{detail}"


class QueryFailed(DataError):
    sqlstate = "22000"
    message = "{detail}"


class ImportFailed(DataError):
    sqlstate = "22000"
    message = 'cannot import "{source}": {detail}'


# Constraint violations.


class NotNullViolation(IntegrityError):
    sqlstate = "23502"
    message = 'null value in column "{column}" of relation "{relation}" violates not-null constraint'


class NullInRow(IntegrityError):
    sqlstate = "23502"
    message = (
        'null value in column "{column}" of relation "{relation}" violates not-null constraint: the row is ({row})'
    )


class UniqueViolation(IntegrityError):
    sqlstate = "23505"
    message = 'duplicate key value violates unique constraint "{constraint}": {key} already exists'


class CheckViolation(IntegrityError):
    sqlstate = "23514"
    message = 'new row for relation "{relation}" violates check constraint "{constraint}": the row is ({row})'


class MissingParent(IntegrityError):
    sqlstate = "23503"
    message = (
        'insert or update on table "{relation}" violates foreign key constraint "{constraint}": '
        'key {key} is not present in table "{parent}"'
    )


class MixedKey(IntegrityError):
    sqlstate = "23503"
    message = (
        'insert or update on table "{relation}" violates foreign key constraint "{constraint}": '
        "key {key} has a NULL and other values, which MATCH FULL does not allow"
    )


class StillReferenced(IntegrityError):
    sqlstate = "23503"
    message = (
        'update or delete on table "{parent}" violates foreign key constraint "{constraint}" on table "{relation}": '
        'key {key} is still referenced from table "{relation}"'
    )

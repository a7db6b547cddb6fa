"""Translation of DuckDB's errors: a table from class and message to the error that PostgreSQL would raise."""

from __future__ import annotations

import re
from typing import Final

import duckdb

from seachange import errors
from seachange.storage.duck import FACTOR_PHRASE
from seachange.storage.duck_functions import SAMPLE_PHRASE
from seachange.storage.duck_numerics import COMPLAINT, SCALE_PHRASE
from seachange.values.types import from_duckdb

# In the message of every guard against values that are too large.
LIMIT_PHRASE: Final = "exceeds the limit of"
DISTANCE_PHRASE: Final = "argument exceeds maximum length of"

# More of a message is not looked at.
_TEXT_CHARS_MAX: Final = 4_000

# In the messages of guards against arguments that a function has no value for.
ARGUMENT_PHRASES: Final[dict[str, str]] = {
    "sqrt": "cannot take square root of a negative number",
    "ln": "cannot take logarithm of zero or a negative number",
    "power": "zero raised to a negative power is undefined",
    "complex": "a negative number raised to a non-integer power yields a complex result",
    "arc": "input is out of range",
    "json_null": "JSON value must not be null",
    "substring": "negative substring length not allowed",
}

# A class of duckdb ("" is any), a pattern searched in the message, and the error; the first match wins.
_RULES: Final[tuple[tuple[str, str, type[errors.Error]], ...]] = (
    ("", r"\.parquet", errors.SegmentDamaged),
    ("InterruptException", "", errors.QueryCanceled),
    ("INTERRUPTException", "", errors.QueryCanceled),
    ("", "has been dropped without DOWN USING", errors.NoCounterpart),
    ("", LIMIT_PHRASE, errors.ProgramLimitExceeded),
    ("", DISTANCE_PHRASE, errors.InvalidParameterValue),
    ("", r"^(Invalid Input Error: )?value too long for type", errors.StringTooLong),
    ("", ARGUMENT_PHRASES["sqrt"], errors.InvalidArgumentOfPower),
    ("", ARGUMENT_PHRASES["power"], errors.InvalidArgumentOfPower),
    ("", ARGUMENT_PHRASES["complex"], errors.InvalidArgumentOfPower),
    ("", ARGUMENT_PHRASES["ln"], errors.InvalidArgumentOfLogarithm),
    ("", ARGUMENT_PHRASES["arc"], errors.NumericValueOutOfRange),
    ("", ARGUMENT_PHRASES["substring"], errors.SubstringError),
    ("", ARGUMENT_PHRASES["json_null"], errors.NullValueNotAllowed),
    ("", r"interval cannot be 0!|step size cannot equal zero", errors.InvalidParameterValue),
    ("", r"composite interval that has mixed signs", errors.FeatureNotSupported),
    ("", SAMPLE_PHRASE, errors.InvalidParameterValue),
    ("", r"DatetimeFieldOverflow: |Date out of range: ", errors.DatetimeFieldOverflow),
    ("", r"InvalidDatetimeFormat: ", errors.InvalidDatetimeFormat),
    ("", r"extract specifier .* not recognized", errors.InvalidParameterValue),
    ("", FACTOR_PHRASE, errors.NumericValueOutOfRange),
    ("", SCALE_PHRASE, errors.QueryFailed),
    ("OutOfMemoryException", r"max_temp_directory_size|offload data block", errors.OutOfTemporarySpace),
    ("OutOfMemoryException", "", errors.OutOfMemory),
    # Python's, of a stream of rows.
    ("", r"failed: MemoryError", errors.OutOfMemory),
    ("", r"[Dd]ivision by zero", errors.DivisionByZero),
    ("ConversionException", r"(date|timestamp|time) field value out of range", errors.DatetimeFieldOverflow),
    ("ConversionException", r"invalid (date|timestamp|time) field format", errors.InvalidDatetimeFormat),
    (
        "ConversionException",
        r"string ['\"][-+]?[0-9.]+(e[-+]?[0-9]+)?['\"] to (U?INT|DECIMAL|HUGEINT)",
        errors.NumericValueOutOfRange,
    ),
    ("ConversionException", r"string '", errors.InvalidTextRepresentation),
    ("ConversionException", r"out of range|[Cc]ould not cast value|overflow", errors.NumericValueOutOfRange),
    ("ConversionException", "", errors.InvalidTextRepresentation),
    ("OutOfRangeException", "", errors.NumericValueOutOfRange),
    ("", r"More than one row returned by a subquery", errors.CardinalityViolation),
    ("BinderException", "expression depth", errors.StatementTooComplex),
    ("BinderException", r"Referenced table .* not found", errors.UnresolvedTable),
    # Before what looks for words that the statement, which is in the message, may have as well.
    ("BinderException", r"Error: (Referenced column|.* does not have a column named)", errors.UnresolvedColumn),
    # One that takes arguments of several types cannot be chosen if the type of one is not known.
    ("BinderException", r"Error: Macro .* has multiple overloads", errors.UnresolvedColumn),
    ("BinderException", r"GROUP BY|aggregate|WINDOW|window function", errors.GroupingProblem),
    ("BinderException", r"Ambiguous reference", errors.AmbiguousColumn),
    ("BinderException", r"No function matches|No operator|does not support", errors.UndefinedFunction),
    ("BinderException", r"best candidate function", errors.AmbiguousFunction),
    ("BinderException", r"column .*(not found|not exist)|FROM clause", errors.UnresolvedColumn),
    ("BinderException", r"Cannot compare values of type", errors.UndefinedFunction),
    ("BinderException", r"[Cc]annot (cast|compare|mix)|type mismatch|Unimplemented type", errors.DatatypeMismatch),
    ("BinderException", "", errors.StatementRefused),
    ("CatalogException", r"Function with name|function .* does not exist", errors.UndefinedFunction),
    ("CatalogException", r"Type with name", errors.UndefinedObject),
    ("CatalogException", r"Table with name", errors.UnresolvedTable),
    ("ParserException", "expression depth", errors.StatementTooComplex),
    ("ParserException", "", errors.SyntaxProblem),
    ("NotImplementedException", "", errors.FeatureNotSupported),
    ("TypeMismatchException", "", errors.DatatypeMismatch),
    ("InternalException", "", errors.Bug),
    ("FatalException", "", errors.Bug),
)

# What people make most often, in the words of PostgreSQL.
_WORDINGS: Final = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r'Referenced column "(.+)" not found in FROM clause.*', r'column "\1" does not exist'),
        (r'[\w ]+ "(.+)" does not have a column named "(.+)"', r"column \1.\2 does not exist"),
        (r'Referenced table "(.+)" not found.*', r'missing FROM-clause entry for table "\1"'),
        (r"Table with name (\S+) does not exist.*", r'relation "\1" does not exist'),
        (r'Ambiguous reference to column name "(.+)" \(.*', r'column reference "\1" is ambiguous'),
        (
            r"Macro (?:seachange_)?(\w+?)(?:_as_declared)?\(\) has multiple overloads.*",
            r"a column or table that an argument of function \1 names does not exist",
        ),
    )
)
# The same, of types.
_TYPED_WORDINGS: Final = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"No function matches the given name and argument types '(.+)'\. You.*", r"function \1 does not exist"),
        (
            r"Cannot compare values of type (.+) and type (.+) - an explicit cast is required",
            r"operator does not exist: values of types \1 and \2 are compared only after a cast",
        ),
    )
)
_TYPE = re.compile(r"\b[A-Z][A-Z_0-9]+(?:\([\d,]+\)| WITH TIME ZONE)?(?:\[\])*(?![\w(])")
# Types that only constants have, and one that no column has.
_NAMED_TYPES = {"STRING_LITERAL": "unknown", "INTEGER_LITERAL": "integer", "TIMESTAMPTZ_NS": "timestamp with time zone"}
_COMPLAINT = re.compile(rf"string ['\"]{COMPLAINT}(.+)['\"] to ")
_OWN = re.compile(r"Python exception .*?: (?:seachange\.errors\.(?:\w+\.)?)?([A-Z]\w+): (.*)")
_PREFIX = re.compile(r"^[A-Z][A-Za-z ]*(Error|Exception): ")
_FILE = re.compile(r"[^\s\"']+\.parquet")
# A value that is none of the type that it was to have.
_VALUES: Final = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"string '(?P<value>.*?)' to (?P<type>\w+)",
        r"with value (?P<value>\S+) can't be cast .* destination type (?P<type>\w+)",
        r'Casting value "(?P<value>.*?)" to type (?P<type>[\w(),]+) failed',
        r"[Cc]ould not cast value (?P<value>\S+) to (?P<type>[\w(),]+)",
        r"Overflow in \w+ of (?P<type>\w+) \((?P<value>.*?)\)!",
    )
)
_TYPE_NAME = re.compile(r"Type with name (\S+)")
_TOO_LONG = re.compile(r"for type (.+)")
# DuckDB's internal names of types in messages.
_INTERNAL_TYPES = {
    "bool": "boolean",
    "int16": "smallint",
    "int32": "integer",
    "int64": "bigint",
    "float": "real",
    "double": "double precision",
}


def translate_error(error: Exception) -> errors.Error:
    """`error` is duckdb's own, or an OSError by which Arrow hands one through."""
    text = _shortened(str(error))
    own = _OWN.search(text)
    if own is not None:
        return _own_error(own)
    kind = type(error).__name__ if isinstance(error, duckdb.Error) else _kind_in(text)
    complaint = _COMPLAINT.search(text)
    text = complaint[1] if complaint is not None else text
    for name, pattern, made in _RULES:
        if (not name or name == kind) and re.search(pattern, text):
            return _make(made, text)
    return errors.QueryFailed(detail=_first_line(text))


def _shortened(text: str) -> str:
    """A message may have a value of megabytes in it, over which patterns take as long as the square of its length.

    >>> len(_shortened("a" * 10_000_000)), _shortened("short")
    (4005, 'short')
    """
    return (
        text if len(text) <= _TEXT_CHARS_MAX else f"{text[: _TEXT_CHARS_MAX // 2]} ... {text[-_TEXT_CHARS_MAX // 2 :]}"
    )


def _own_error(match: re.Match[str]) -> errors.Error:
    """What a function of ours has raised, of which DuckDB passes on the class and the text."""
    if match[1] == RecursionError.__name__:
        # Over a document that is nested deeply.
        return errors.StatementTooComplex()
    if match[1] == MemoryError.__name__:
        return errors.OutOfMemory(detail="the process cannot allocate more")
    made = getattr(errors, match[1], errors.QueryFailed)
    own: errors.Error = made(detail=match[2], type="", value="", feature="", instead="", kind="", name="")
    own.args = (match[2],)
    return own


def _kind_in(text: str) -> str:
    """The class that the message of an error names: "Conversion Error: ..." is a ConversionException."""
    return text.partition(" Error:")[0].replace(" ", "") + "Exception"


def _first_line(text: str) -> str:
    """
    >>> _first_line('Binder Error: Referenced column "nam" not found in FROM clause!\\nCandidate bindings: "name"')
    'column "nam" does not exist'
    >>> _first_line("Cannot compare values of type DECIMAL(9,2) and type VARCHAR - an explicit cast is required")
    'operator does not exist: values of types numeric(9,2) and text are compared only after a cast'
    """
    line = _PREFIX.sub("", text).split("\n", 1)[0].strip()
    typed = next(
        (match.expand(words) for wording, words in _TYPED_WORDINGS if (match := wording.fullmatch(line))), None
    )
    if typed is not None:
        return _TYPE.sub(lambda found: _type_named(found[0]), typed)
    found = next((match.expand(words) for wording, words in _WORDINGS if (match := wording.fullmatch(line))), None)
    return line if found is None else found


def _type_named(name: str) -> str:
    """A type of DuckDB's by its name in PostgreSQL."""
    known = from_duckdb(name)
    return _NAMED_TYPES.get(name) or (str(known) if known is not None else name.lower())


def _make(made: type[errors.Error], text: str) -> errors.Error:
    detail = _first_line(text)
    value = next((match for pattern in _VALUES if (match := pattern.search(text))), None)
    file = _FILE.search(text)
    type_name = _TYPE_NAME.search(text)
    target = value["type"].lower().replace("decimal", "numeric") if value else "the target"
    too_long = _TOO_LONG.search(detail)
    return made(
        detail=detail,
        reason="user request",
        feature=detail,
        instead="",
        kind="type",
        name=type_name.group(1) if type_name else detail,
        value=value["value"] if value else detail,
        type=too_long.group(1) if too_long else _INTERNAL_TYPES.get(target, target),
        file=file.group() if file else "",
    )

"""Generated DDL statements: values that a text can stand for."""

from dataclasses import replace

from hypothesis import strategies as st

from seachange.model.object_kind import ObjectKind
from seachange.model.relation import RelationName
from seachange.model.schema.access import PRIVILEGES
from seachange.model.schema.constraint import Action
from seachange.model.statements.object_statements import (
    AddEnumValue,
    AlterSequence,
    ChangeOwner,
    CommentOn,
    CreateDatabase,
    CreateEnum,
    CreateSchema,
    CreateSequence,
    CreateView,
    DropEnumValue,
    DropObjects,
    Grant,
    MoveObject,
    OwnedBy,
    RefreshView,
    RenameEnumValue,
    RenameObject,
    SequenceOptions,
    TruncateTables,
    UndropTable,
)
from seachange.model.statements.session_statements import DdlExplanation, Explain
from seachange.model.statements.table_statements import (
    AddColumn,
    AddConstraint,
    AddIdentity,
    AlterColumnType,
    AlterPrimaryKey,
    AlterTable,
    CheckDefinition,
    ColumnDefinition,
    ConstantDefault,
    CreateIndex,
    CreateMaterializedView,
    CreateTable,
    DropColumn,
    DropConstraint,
    DropExpression,
    DropIdentity,
    DropIndex,
    DropNotNull,
    DropTable,
    ExpressionDefinition,
    ForeignKeyDefinition,
    IdentityDefinition,
    KeepAsItIs,
    KeyDefinition,
    RenameColumn,
    RenameConstraint,
    RenameTable,
    SetColumnSetting,
    SetDefault,
    SetExpression,
    SetIdentity,
    SetNotNull,
    SetParameters,
    UserType,
    ValidateConstraint,
    Volatility,
)
from seachange.values.types import Kind, SqlType

FLAGS = st.booleans()
INTEGERS = [SqlType(Kind.SMALLINT), SqlType(Kind.INTEGER), SqlType(Kind.BIGINT)]
# Words of the language are names too, if they are quoted.
NAMES = st.one_of(
    st.sampled_from(
        ["a", "b", "t", "A b", "select", "column", "if", "constraint", 'q"q', "it's", "größe", "none", ";", "("]
    ),
    st.text("abXY_09 \"'().,;$-é", min_size=1, max_size=6),
)
TEXTS = st.text("abX '\"();,-\\$é\n", max_size=6)
RELATIONS = st.builds(RelationName, st.none() | NAMES, NAMES)
TOP = st.builds(RelationName, st.none(), NAMES)
# A name that is no type's.
USER_TYPES = st.builds(lambda schema, name: UserType(RelationName(schema, "T " + name)), st.none() | NAMES, NAMES)
TYPES = st.one_of(
    # `character` alone is a `character(1)`, and an array is one of something.
    st.sampled_from([SqlType(k) for k in Kind if k not in (Kind.NUMERIC, Kind.CHAR, Kind.ARRAY)]),
    st.just(SqlType(Kind.ARRAY, element=SqlType(Kind.TEXT))),
    st.just(SqlType(Kind.NUMERIC, 10, 2)),
    st.sampled_from([SqlType(k, length=n) for k in (Kind.VARCHAR, Kind.CHAR) for n in (1, 9)]),
    USER_TYPES,
)
CONSTANTS = st.one_of(
    st.builds(ConstantDefault, TEXTS, st.just(True)),
    st.sampled_from([ConstantDefault(t) for t in ("0", "-1", "1.5", "-2e10", "true", "false", None)]),
)


def tuples(of, least=0, most=3, unique=False):
    return st.lists(of, min_size=least, max_size=most, unique=unique).map(tuple)


COLUMN_LISTS = tuples(NAMES, 1)
DEFAULT_EXPRESSIONS = st.sampled_from(
    [
        ExpressionDefinition(("(1 + 1)",)),
        ExpressionDefinition(("(UPPER('x') || 'y')",)),
        ExpressionDefinition(("(CASE WHEN TRUE THEN NULL ELSE 1 END)",)),
        ExpressionDefinition(("(CURRENT_TIMESTAMP)",), volatility=Volatility.STABLE),
        ExpressionDefinition(
            ('(nextval(\'"s"."Q"\'))',), volatility=Volatility.VOLATILE, sequences=(RelationName("s", "Q"),)
        ),
    ]
)
ROW_EXPRESSIONS = st.one_of(
    st.builds(lambda a: ExpressionDefinition(("(", " + 1)"), (a,)), NAMES),
    st.builds(lambda a, b: ExpressionDefinition(("(", " || LOWER(", "))"), (a, b)), NAMES, NAMES),
)
DEFAULTS = CONSTANTS | DEFAULT_EXPRESSIONS
CHECKS = st.builds(lambda a, b, name: CheckDefinition(("(", " > ", ")"), (a, b), name), NAMES, NAMES, st.none() | NAMES)


def consistent(key, match_full):
    """What is deferred is deferrable, and of one column MATCH FULL says nothing."""
    full = match_full and len(key.columns) > 1
    return replace(key, deferrable=key.deferrable or key.initially_deferred, match_full=full)


def foreign_keys(columns):
    actions = st.sampled_from(Action)
    keys = st.builds(
        ForeignKeyDefinition, columns, RELATIONS, tuples(NAMES), st.none() | NAMES, actions, actions, FLAGS, FLAGS
    )
    return st.builds(consistent, keys, FLAGS)


def numbers(least=-(2**63)):
    return st.none() | st.integers(least, 2**63 - 1)


def one_way(options, restarts):
    """Of two ways to say the same at most one, and RESTART only where it may stand."""
    return replace(
        options,
        no_minimum=options.no_minimum and options.minimum is None,
        no_maximum=options.no_maximum and options.maximum is None,
        restart=options.restart if restarts else None,
        restart_at_start=restarts and options.restart_at_start and options.restart is None,
    )


def sequence_options(restarts):
    made = st.builds(
        SequenceOptions,
        type=st.none() | st.sampled_from(INTEGERS),
        increment=numbers(),
        minimum=numbers(),
        maximum=numbers(),
        start=numbers(),
        restart=numbers(),
        cache=numbers(1),
        cycle=st.none() | FLAGS,
        no_minimum=FLAGS,
        no_maximum=FLAGS,
        restart_at_start=FLAGS,
    )
    return made.map(lambda options: one_way(options, restarts))


IDENTITIES = st.builds(IdentityDefinition, FLAGS, sequence_options(restarts=False), st.none() | RELATIONS)
COMPRESSIONS = st.none() | st.sampled_from(["lz4", "zstd", "snappy", "none"])
SETTINGS = COMPRESSIONS.map(lambda method: (("compression", method),) if method else ())
COLUMNS = st.one_of(
    st.builds(ColumnDefinition, NAMES, TYPES, FLAGS, st.none() | DEFAULTS, settings=SETTINGS),
    st.builds(ColumnDefinition, NAMES, TYPES, FLAGS, generated=ROW_EXPRESSIONS),
    st.builds(ColumnDefinition, NAMES, st.sampled_from(INTEGERS), st.just(False), identity=IDENTITIES),
    st.builds(ColumnDefinition, NAMES, st.sampled_from(INTEGERS), st.just(False), serial=st.just(True)),
)


def keys(primary):
    distinct = st.just(True) if primary else FLAGS
    return st.builds(KeyDefinition, COLUMN_LISTS, st.none() | NAMES, distinct)


def key_not_null(statement):
    key = statement.primary_key.columns if statement.primary_key else ()
    columns = tuple(replace(c, nullable=c.nullable and c.name not in key) for c in statement.columns)
    return replace(statement, columns=columns)


RULES = CHECKS | foreign_keys(COLUMN_LISTS)
CREATE_TABLES = st.builds(
    CreateTable,
    RELATIONS,
    tuples(COLUMNS),
    st.none() | keys(primary=True),
    tuples(keys(primary=False), most=2),
    FLAGS,
    tuples(RULES, most=2),
).map(key_not_null)


@st.composite
def added_columns(draw):
    column = draw(COLUMNS)
    own = st.just((column.name,))
    primary = draw(st.none() | st.builds(KeyDefinition, own, st.none() | NAMES, primary=st.just(True)))
    unique = draw(tuples(st.builds(KeyDefinition, own, st.none() | NAMES, FLAGS), most=1))
    if primary:
        column = replace(column, nullable=False)
    rules = draw(tuples(CHECKS | foreign_keys(own), most=2))
    return AddColumn(column, draw(FLAGS), rules, (*([primary] if primary else []), *unique))


@st.composite
def added_constraints(draw):
    rule = draw(RULES)
    taken = st.builds(KeyDefinition, st.just(()), st.none() | NAMES, primary=FLAGS, using_index=NAMES)
    primary = keys(primary=True).map(lambda key: replace(key, primary=True))
    return AddConstraint(
        draw(st.one_of(st.just(replace(rule, not_valid=draw(FLAGS))), keys(primary=False), primary, taken))
    )


def says_something(action):
    return action.always is not None or action.options != SequenceOptions()


PARAMETERS = (
    (("seachange.iceberg", "on"),),
    (("seachange.iceberg", "off"), ("seachange.iceberg_format", "2")),
    (("seachange.iceberg", None),),
)
ACTIONS = st.one_of(
    added_columns(),
    added_constraints(),
    st.builds(DropColumn, NAMES, FLAGS, FLAGS),
    st.builds(AlterColumnType, NAMES, TYPES, st.none() | ROW_EXPRESSIONS),
    st.builds(SetDefault, NAMES, st.none() | DEFAULTS),
    st.builds(SetNotNull, NAMES),
    st.builds(DropNotNull, NAMES),
    st.builds(SetExpression, NAMES, ROW_EXPRESSIONS),
    st.builds(DropExpression, NAMES, FLAGS),
    st.builds(AddIdentity, NAMES, IDENTITIES),
    st.builds(SetIdentity, NAMES, st.none() | FLAGS, sequence_options(restarts=True)).filter(says_something),
    st.builds(DropIdentity, NAMES, FLAGS),
    st.builds(DropConstraint, NAMES, FLAGS, FLAGS),
    st.builds(ValidateConstraint, NAMES),
    st.builds(AlterPrimaryKey, COLUMN_LISTS),
    st.builds(KeepAsItIs, st.none() | NAMES),
    st.builds(SetParameters, st.sampled_from(PARAMETERS)),
    st.builds(SetColumnSetting, NAMES, st.just("compression"), COMPRESSIONS),
    st.builds(SetColumnSetting, NAMES, st.just("statistics_target"), st.none() | st.integers(0, 10_000)),
)
RENAMES = st.one_of(
    st.builds(RenameColumn, NAMES, NAMES),
    st.builds(RenameConstraint, NAMES, NAMES),
    st.builds(RenameTable, NAMES),
)
ALTER_TABLES = st.builds(AlterTable, RELATIONS, tuples(ACTIONS, 1) | tuples(RENAMES, 1, 1), FLAGS, FLAGS)


def dropped_alone(statement):
    """What is dropped concurrently is one index."""
    alone = statement.concurrently
    return replace(statement, indexes=statement.indexes[:1], cascade=False) if alone else statement


def with_orders(statement, descending, swapped, method):
    """Only a btree is unique."""
    places = range(len(statement.columns))
    return replace(
        statement,
        descending=tuple(place for place in places if place in descending),
        nulls_swapped=tuple(place for place in places if place in swapped),
        method="btree" if statement.unique else method,
    )


K = ObjectKind
IN_SCHEMAS = (K.SEQUENCE, K.TYPE, K.VIEW)
OBJECTS = st.one_of(
    st.builds(DropObjects, st.sampled_from(IN_SCHEMAS), tuples(RELATIONS, 1), FLAGS, FLAGS),
    st.builds(DropObjects, st.just(K.SCHEMA), tuples(TOP, 1), FLAGS, FLAGS),
    st.builds(DropObjects, st.just(K.DATABASE), tuples(TOP, 1, 1), FLAGS),
    st.builds(RenameObject, st.sampled_from([K.SEQUENCE, K.VIEW, K.INDEX]), RELATIONS, NAMES, FLAGS),
    st.builds(RenameObject, st.just(K.TYPE), RELATIONS, NAMES),
    st.builds(RenameObject, st.sampled_from([K.SCHEMA, K.DATABASE]), TOP, NAMES),
    st.builds(MoveObject, st.sampled_from([K.TABLE, K.SEQUENCE, K.VIEW]), RELATIONS, NAMES, FLAGS),
    st.builds(ChangeOwner, st.sampled_from([K.TABLE, K.SEQUENCE, K.VIEW]), RELATIONS, NAMES, FLAGS),
    st.builds(ChangeOwner, st.sampled_from([K.SCHEMA, K.DATABASE]), TOP, NAMES),
    st.builds(CreateDatabase, NAMES, st.none() | NAMES),
    st.builds(CreateSchema, NAMES, FLAGS, st.none() | NAMES),
)
COMMENTS = st.one_of(
    st.builds(CommentOn, st.sampled_from([K.TABLE, K.INDEX, *IN_SCHEMAS]), RELATIONS, st.none(), st.none() | TEXTS),
    st.builds(CommentOn, st.sampled_from([K.SCHEMA, K.DATABASE]), TOP, st.none(), st.none() | TEXTS),
    st.builds(CommentOn, st.sampled_from([K.COLUMN, K.CONSTRAINT]), RELATIONS, NAMES, st.none() | TEXTS),
)


@st.composite
def grants(draw):
    kind = draw(st.sampled_from(sorted(PRIVILEGES)))
    privileges = draw(st.just(("ALL",)) | tuples(st.sampled_from(sorted(PRIVILEGES[kind])), 1, 3, unique=True))
    all_in_schema = kind in (K.TABLE, K.SEQUENCE) and draw(FLAGS)
    top = all_in_schema or kind in (K.SCHEMA, K.DATABASE)
    names, roles = draw(tuples(TOP if top else RELATIONS, 1)), draw(tuples(NAMES, 1))
    revoke = draw(FLAGS)
    return Grant(privileges, kind, names, roles, draw(FLAGS), revoke, revoke and draw(FLAGS), all_in_schema)


OWNERS = st.builds(OwnedBy, RELATIONS, NAMES) | st.just(OwnedBy(None, None))
SEQUENCES = st.one_of(
    st.builds(CreateSequence, RELATIONS, sequence_options(restarts=False), st.none() | OWNERS, FLAGS),
    st.builds(AlterSequence, RELATIONS, sequence_options(restarts=True), OWNERS, FLAGS),
)
ENUMS = st.one_of(
    st.builds(CreateEnum, RELATIONS, tuples(TEXTS)),
    st.builds(AddEnumValue, RELATIONS, TEXTS, st.none() | TEXTS, st.none(), FLAGS),
    st.builds(AddEnumValue, RELATIONS, TEXTS, st.none(), TEXTS, FLAGS),
    st.builds(RenameEnumValue, RELATIONS, TEXTS, TEXTS),
    st.builds(DropEnumValue, RELATIONS, TEXTS),
)
T = RelationName(None, "t")
QUERIES = st.sampled_from([("SELECT 1", (), ()), ("SELECT a, t.b FROM t", (T,), ((T, "a"), (T, "b")))])


@st.composite
def views(draw):
    query, relations, used = draw(QUERIES)
    return CreateView(draw(RELATIONS), query, relations, used, draw(tuples(NAMES)), draw(FLAGS))


MATERIALIZED = st.one_of(
    st.builds(CreateMaterializedView, views().map(lambda view: replace(view, or_replace=False)), FLAGS, FLAGS),
    st.builds(RefreshView, RELATIONS, FLAGS).map(lambda refresh: replace(refresh, with_data=True)),
    st.builds(RefreshView, RELATIONS, st.just(False), FLAGS),
)
TABLES = st.one_of(
    st.builds(DropTable, tuples(RELATIONS, 1), FLAGS, FLAGS),
    st.builds(TruncateTables, tuples(RELATIONS, 1), FLAGS, FLAGS),
    st.builds(UndropTable, RELATIONS),
)
INDEXES = st.one_of(
    st.builds(
        with_orders,
        st.builds(CreateIndex, RELATIONS, COLUMN_LISTS, NAMES, FLAGS, tuples(NAMES), FLAGS, FLAGS, FLAGS),
        st.sets(st.integers(0, 3)),
        st.sets(st.integers(0, 3)),
        st.sampled_from(["btree", "brin", "gin"]),
    ),
    st.builds(DropIndex, tuples(RELATIONS, 1), FLAGS, FLAGS, FLAGS).map(dropped_alone),
)
EXPLAINS = st.builds(Explain, st.just("DROP TABLE t, u"), ddl=st.sampled_from(DdlExplanation))
FAMILIES = {
    "create table": CREATE_TABLES,
    "alter table": ALTER_TABLES,
    "tables": TABLES,
    "indexes": INDEXES,
    "objects": OBJECTS,
    "comments": COMMENTS,
    "grants": grants(),
    "sequences": SEQUENCES,
    "enums": ENUMS,
    "views": views(),
    "materialized views": MATERIALIZED,
    "explain": EXPLAINS,
}

"""DDL statement values as text: the inverse of the parser, for tests."""

from functools import singledispatch

from seachange.model.constraint import Action
from seachange.model.object_statements import (
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
    ObjectKind,
    RenameEnumValue,
    RenameObject,
    SequenceOptions,
    SequenceOwner,
    TruncateTables,
    UndropTable,
)
from seachange.model.relation import RelationName
from seachange.model.statements import (
    AddColumn,
    AddConstraint,
    AddIdentity,
    AlterColumnType,
    AlterPrimaryKey,
    AlterTable,
    CheckDefinition,
    ColumnDefinition,
    Constant,
    CreateIndex,
    CreateTable,
    DropColumn,
    DropConstraint,
    DropExpression,
    DropIdentity,
    DropIndex,
    DropNotNull,
    DropTable,
    Explain,
    ExpressionDefinition,
    ForeignKeyDefinition,
    IdentityDefinition,
    KeyDefinition,
    RenameColumn,
    RenameConstraint,
    RenameTable,
    SetDefault,
    SetExpression,
    SetIdentity,
    SetNotNull,
    UserType,
    ValidateConstraint,
)
from seachange.model.types import Kind, SqlType

SERIALS = {Kind.SMALLINT: "smallserial", Kind.INTEGER: "serial", Kind.BIGINT: "bigserial"}


def join(*parts):
    return " ".join(part for part in parts if part)


def given(condition, text):
    return text if condition else ""


def ident(name):
    return '"' + name.replace('"', '""') + '"'


def string(text):
    return "'" + text.replace("'", "''") + "'"


def idents(names):
    return "(" + ", ".join(map(ident, names)) + ")"


def listed(values):
    return ", ".join(map(show, values))


def cascade(statement):
    return given(statement.cascade, "CASCADE")


def exists(statement):
    return given(statement.if_exists, "IF EXISTS")


@singledispatch
def show(value) -> str:
    raise AssertionError(value)


@show.register
def _(value: RelationName):
    return ident(value.name) if value.schema is None else f"{ident(value.schema)}.{ident(value.name)}"


@show.register
def _(value: SqlType):
    return str(value)


@show.register
def _(value: UserType):
    return show(value.name)


@show.register
def _(value: Constant):
    if value.text is None:
        return "NULL"
    return string(value.text) if value.quoted else value.text


@show.register
def _(value: ExpressionDefinition):
    """DuckDB's text of these expressions is PostgreSQL's too."""
    gaps = [*map(ident, value.columns), ""]
    return "".join(piece + gap for piece, gap in zip(value.pieces, gaps, strict=True))


@show.register
def _(value: SequenceOptions):
    return join(
        given(value.type is not None, f"AS {value.type}"),
        given(value.increment is not None, f"INCREMENT BY {value.increment}"),
        given(value.minimum is not None, f"MINVALUE {value.minimum}"),
        given(value.no_minimum, "NO MINVALUE"),
        given(value.maximum is not None, f"MAXVALUE {value.maximum}"),
        given(value.no_maximum, "NO MAXVALUE"),
        given(value.start is not None, f"START WITH {value.start}"),
        given(value.restart is not None, f"RESTART WITH {value.restart}"),
        given(value.restart_at_start, "RESTART"),
        given(value.cache is not None, f"CACHE {value.cache}"),
        given(value.cycle is not None, "CYCLE" if value.cycle else "NO CYCLE"),
    )


@show.register
def _(value: SequenceOwner):
    return "OWNED BY " + ("NONE" if value.table is None else f"{show(value.table)}.{ident(value.column or '')}")


def always(value):
    return "ALWAYS" if value else "BY DEFAULT"


@show.register
def _(value: IdentityDefinition):
    options = show(value.options)
    return join("GENERATED", always(value.always), "AS IDENTITY", given(options, f"({options})"))


@show.register
def _(value: ColumnDefinition):
    assert not value.serial or isinstance(value.type, SqlType)
    type_ = SERIALS[value.type.kind] if value.serial and isinstance(value.type, SqlType) else show(value.type)
    return join(
        ident(value.name),
        type_,
        value.default and "DEFAULT " + show(value.default),
        value.generated and f"GENERATED ALWAYS AS {show(value.generated)} STORED",
        value.identity and show(value.identity),
        given(not value.nullable, "NOT NULL"),
    )


def named(value):
    return given(value.name is not None, f"CONSTRAINT {ident(value.name or '')}")


def nulls(value):
    return given(not value.nulls_distinct, "NULLS NOT DISTINCT")


@show.register
def _(value: KeyDefinition):
    kind = "PRIMARY KEY" if value.primary else join("UNIQUE", nulls(value))
    if value.using_index is not None:
        return join(named(value), kind, "USING INDEX", ident(value.using_index))
    return join(named(value), kind, idents(value.columns))


@show.register
def _(value: CheckDefinition):
    text = show(ExpressionDefinition(value.pieces, value.columns))
    return join(named(value), "CHECK", text, given(value.not_valid, "NOT VALID"))


def references(value):
    return join(
        "REFERENCES",
        show(value.parent),
        value.parent_columns and idents(value.parent_columns),
        given(value.on_delete is not Action.NO_ACTION, f"ON DELETE {value.on_delete}"),
        given(value.on_update is not Action.NO_ACTION, f"ON UPDATE {value.on_update}"),
        given(value.deferrable, "DEFERRABLE"),
        given(value.initially_deferred, "INITIALLY DEFERRED"),
        given(value.not_valid, "NOT VALID"),
    )


@show.register
def _(value: ForeignKeyDefinition):
    return join(named(value), "FOREIGN KEY", idents(value.columns), references(value))


@show.register
def _(value: CreateTable):
    key = value.primary_key
    primary = key and join(named(key), "PRIMARY KEY", idents(key.columns))
    elements = [*map(show, value.columns), *([primary] if primary else []), *map(show, (*value.unique, *value.rules))]
    absent = given(value.if_not_exists, "IF NOT EXISTS")
    return join("CREATE TABLE", absent, show(value.table), "(" + ", ".join(elements) + ")")


@show.register
def _(value: DropTable):
    return join("DROP TABLE", exists(value), listed(value.tables), cascade(value))


@show.register
def _(value: CreateIndex):
    return join(
        "CREATE",
        given(value.unique, "UNIQUE"),
        "INDEX",
        given(value.concurrently, "CONCURRENTLY"),
        given(value.if_not_exists, "IF NOT EXISTS"),
        value.name and ident(value.name),
        f"ON {show(value.table)} {idents(value.columns)}",
        value.include and "INCLUDE " + idents(value.include),
        nulls(value),
    )


@show.register
def _(value: DropIndex):
    concurrently = given(value.concurrently, "CONCURRENTLY")
    return join("DROP INDEX", concurrently, exists(value), listed(value.indexes), cascade(value))


@show.register
def _(value: AddColumn):
    keys = [join(named(k), "PRIMARY KEY" if k.primary else join("UNIQUE", nulls(k))) for k in value.keys]
    rules = [
        join(named(rule), references(rule)) if isinstance(rule, ForeignKeyDefinition) else show(rule)
        for rule in value.rules
    ]
    return join("ADD", given(value.if_not_exists, "COLUMN IF NOT EXISTS"), show(value.column), *keys, *rules)


@show.register
def _(value: DropColumn):
    return join("DROP COLUMN", exists(value), ident(value.name), cascade(value))


@show.register
def _(value: RenameColumn):
    return f"RENAME COLUMN {ident(value.name)} TO {ident(value.new_name)}"


@show.register
def _(value: RenameConstraint):
    return f"RENAME CONSTRAINT {ident(value.name)} TO {ident(value.new_name)}"


@show.register
def _(value: RenameTable):
    return f"RENAME TO {ident(value.new_name)}"


@show.register
def _(value: AlterColumnType):
    return join(f"ALTER {ident(value.name)} TYPE {show(value.type)}", value.using and "USING " + show(value.using))


@show.register
def _(value: SetDefault):
    action = "DROP DEFAULT" if value.default is None else "SET DEFAULT " + show(value.default)
    return f"ALTER {ident(value.name)} {action}"


@show.register
def _(value: SetExpression):
    return f"ALTER {ident(value.name)} SET EXPRESSION AS {show(value.expression)}"


@show.register
def _(value: DropExpression):
    return join("ALTER", ident(value.name), "DROP EXPRESSION", exists(value))


@show.register
def _(value: AddIdentity):
    return f"ALTER {ident(value.name)} ADD {show(value.identity)}"


@show.register
def _(value: SetIdentity):
    generated = given(value.always is not None, f"SET GENERATED {always(value.always)}")
    return join("ALTER", ident(value.name), generated, each_set(value.options))


def each_set(options):
    """The options, each with SET before it."""
    fields = {name: getattr(options, name) for name in SequenceOptions.__dataclass_fields__}
    said = {name: value for name, value in fields.items() if value is not None and value is not False}
    if options.cycle is False:
        said["cycle"] = False
    return join(*("SET " + show(SequenceOptions(**{name: value})) for name, value in said.items()))


@show.register
def _(value: DropIdentity):
    return join("ALTER", ident(value.name), "DROP IDENTITY", exists(value))


@show.register
def _(value: AddConstraint):
    return "ADD " + show(value.constraint)


@show.register
def _(value: DropConstraint):
    return join("DROP CONSTRAINT", exists(value), ident(value.name), cascade(value))


@show.register
def _(value: SetNotNull):
    return f"ALTER {ident(value.name)} SET NOT NULL"


@show.register
def _(value: DropNotNull):
    return f"ALTER {ident(value.name)} DROP NOT NULL"


@show.register
def _(value: ValidateConstraint):
    return f"VALIDATE CONSTRAINT {ident(value.name)}"


@show.register
def _(value: AlterPrimaryKey):
    return f"ALTER PRIMARY KEY USING COLUMNS {idents(value.columns)}"


@show.register
def _(value: AlterTable):
    concurrently = given(value.concurrently, "CONCURRENTLY")
    return join("ALTER TABLE", concurrently, exists(value), show(value.table), listed(value.actions))


@show.register
def _(value: DropObjects):
    return join("DROP", value.kind.upper(), exists(value), listed(value.names), cascade(value))


@show.register
def _(value: RenameObject):
    return join("ALTER", value.kind.upper(), exists(value), show(value.name), "RENAME TO", ident(value.new_name))


@show.register
def _(value: MoveObject):
    return join("ALTER", value.kind.upper(), exists(value), show(value.name), "SET SCHEMA", ident(value.schema))


@show.register
def _(value: ChangeOwner):
    return join("ALTER", value.kind.upper(), exists(value), show(value.name), "OWNER TO", ident(value.role))


@show.register
def _(value: CommentOn):
    name = show(value.name)
    if value.kind is ObjectKind.COLUMN:
        name = f"{name}.{ident(value.part or '')}"
    elif value.kind is ObjectKind.CONSTRAINT:
        name = f"{ident(value.part or '')} ON {name}"
    return f"COMMENT ON {value.kind.upper()} {name} IS {'NULL' if value.text is None else string(value.text)}"


@show.register
def _(value: Grant):
    privileges = ", ".join(value.privileges)
    kind = f"ALL {value.kind.upper()}S IN SCHEMA" if value.all_in_schema else value.kind.upper()
    names, roles = listed(value.names), ", ".join(map(ident, value.roles))
    if value.revoke:
        option = given(value.grant_option, "GRANT OPTION FOR")
        return join("REVOKE", option, privileges, "ON", kind, names, "FROM", roles, cascade(value))
    option = given(value.grant_option, "WITH GRANT OPTION")
    return join("GRANT", privileges, "ON", kind, names, "TO", roles, option)


@show.register
def _(value: CreateDatabase):
    return join("CREATE DATABASE", ident(value.name), value.owner and f"OWNER = {ident(value.owner)}")


@show.register
def _(value: CreateSchema):
    owner = value.owner and "AUTHORIZATION " + ident(value.owner)
    return join("CREATE SCHEMA", given(value.if_not_exists, "IF NOT EXISTS"), ident(value.name), owner)


@show.register
def _(value: TruncateTables):
    restart = given(value.restart_identity, "RESTART IDENTITY")
    return join("TRUNCATE TABLE", listed(value.tables), restart, cascade(value))


@show.register
def _(value: UndropTable):
    return f"UNDROP TABLE {show(value.table)}"


@show.register
def _(value: CreateSequence):
    absent = given(value.if_not_exists, "IF NOT EXISTS")
    return join("CREATE SEQUENCE", absent, show(value.name), show(value.options), value.owner and show(value.owner))


@show.register
def _(value: AlterSequence):
    owner = value.owner and show(value.owner)
    return join("ALTER SEQUENCE", exists(value), show(value.name), show(value.options), owner)


@show.register
def _(value: CreateEnum):
    return f"CREATE TYPE {show(value.name)} AS ENUM ({', '.join(map(string, value.values))})"


@show.register
def _(value: AddEnumValue):
    return join(
        f"ALTER TYPE {show(value.type)} ADD VALUE",
        given(value.if_not_exists, "IF NOT EXISTS"),
        string(value.value),
        given(value.before is not None, f"BEFORE {string(value.before or '')}"),
        given(value.after is not None, f"AFTER {string(value.after or '')}"),
    )


@show.register
def _(value: RenameEnumValue):
    return f"ALTER TYPE {show(value.type)} RENAME VALUE {string(value.value)} TO {string(value.new_value)}"


@show.register
def _(value: DropEnumValue):
    return f"ALTER TYPE {show(value.type)} DROP VALUE {string(value.value)}"


@show.register
def _(value: CreateView):
    verb = "CREATE OR REPLACE VIEW" if value.or_replace else "CREATE VIEW"
    return join(verb, show(value.name), value.columns and idents(value.columns), "AS", value.query)


@show.register
def _(value: Explain):
    option = given(value.ddl != "stages", f", {value.ddl}")
    return f"EXPLAIN (DDL{option}) {value.query}"

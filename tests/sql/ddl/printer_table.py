"""Statements about tables and indexes as text."""

from seachange.model.schema.constraint import Action
from seachange.model.statements.object_statements import (
    SequenceOptions,
)
from seachange.model.statements.table_statements import (
    AddColumn,
    AddConstraint,
    AddIdentity,
    AlterColumnType,
    AlterPrimaryKey,
    AlterTable,
    CheckDefinition,
    ColumnDefinition,
    CreateIndex,
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
    ValidateConstraint,
)
from seachange.values.types import Kind, SqlType
from tests.sql.ddl.printing import cascade, exists, given, ident, idents, join, listed, show

SERIALS = {Kind.SMALLINT: "smallserial", Kind.INTEGER: "serial", Kind.BIGINT: "bigserial"}


def always(value):
    return "ALWAYS" if value else "BY DEFAULT"


@show.register
def _(value: IdentityDefinition):
    options = join(value.sequence and f"SEQUENCE NAME {show(value.sequence)}", show(value.options))
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
        *(f"{setting.upper()} {chosen}" for setting, chosen in value.settings),
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
        given(value.match_full, "MATCH FULL"),
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


def _index_key(value, place):
    column, is_descending = value.columns[place], place in value.descending
    nulls_first = is_descending is not (place in value.nulls_swapped)
    ends = given(place in value.nulls_swapped, f"NULLS {'FIRST' if nulls_first else 'LAST'}")
    return join(ident(column), given(is_descending, "DESC"), ends)


@show.register
def _(value: CreateIndex):
    return join(
        "CREATE",
        given(value.unique, "UNIQUE"),
        "INDEX",
        given(value.concurrently, "CONCURRENTLY"),
        given(value.if_not_exists, "IF NOT EXISTS"),
        value.name and ident(value.name),
        f"ON {show(value.table)}",
        given(value.method != "btree", f"USING {value.method}"),
        f"({', '.join(_index_key(value, place) for place in range(len(value.columns)))})",
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
def _(value: SetColumnSetting):
    word = value.setting.removesuffix("_target").upper()
    return f"ALTER {ident(value.name)} SET {word} {'DEFAULT' if value.value is None else value.value}"


@show.register
def _(value: SetParameters):
    is_set = value.parameters[0][1] is not None
    shown = (name if each is None else f"{name} = {each}" for name, each in value.parameters)
    return f"{'SET' if is_set else 'RESET'} ({', '.join(shown)})"


@show.register
def _(value: KeepAsItIs):
    return "SET (fillfactor = 70)" if value.column is None else f"ALTER {ident(value.column)} SET STORAGE PLAIN"


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

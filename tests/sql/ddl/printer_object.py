"""Statements about everything but tables as text, and EXPLAIN."""

from seachange.model.object_kind import ObjectKind
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
    RefreshView,
    RenameEnumValue,
    RenameObject,
    TruncateTables,
    UndropTable,
)
from seachange.model.statements.session_statements import Explain
from seachange.model.statements.table_statements import CreateMaterializedView
from tests.sql.ddl.printing import cascade, exists, given, ident, idents, join, listed, show, string


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
def _(value: CreateMaterializedView):
    view, exists = value.view, given(value.if_not_exists, "IF NOT EXISTS")
    data = given(not value.with_data, "WITH NO DATA")
    columns = view.columns and idents(view.columns)
    return join("CREATE MATERIALIZED VIEW", exists, show(view.name), columns, "AS", view.query, data)


@show.register
def _(value: RefreshView):
    concurrently = given(value.concurrently, "CONCURRENTLY")
    return join("REFRESH MATERIALIZED VIEW", concurrently, show(value.name), given(not value.with_data, "WITH NO DATA"))


@show.register
def _(value: Explain):
    option = given(value.ddl != "stages", f", {value.ddl}")
    return f"EXPLAIN (DDL{option}) {value.query}"

"""Required privileges of each statement: the checks and docs/privileges.md are derived from this table.

**Invariant:** every statement has a row, even if it requires nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from seachange.model.object_kind import ObjectKind
from seachange.model.schema.rights import OWNER
from seachange.model.statements import object_statements as o
from seachange.model.statements import session_statements as s
from seachange.model.statements import table_statements as t

# Rights other than privileges on an object.
MEMBER: Final = "MEMBER"
GRANT_OPTION: Final = "GRANT OPTION"
ADMIN_OPTION: Final = "ADMIN OPTION"
SUPERUSER: Final = "SUPERUSER"
CREATEROLE: Final = "CREATEROLE"
CREATEDB: Final = "CREATEDB"


class Place(StrEnum):
    """The objects on which a right is required."""

    SELF = "the role itself"
    OBJECT = "the object"
    OBJECT_SCHEMA = "the schema of the object"
    OWNERS_SCHEMA = "the schema of the object, of the new owner"
    NEW_SCHEMA = "the schema of the new object"
    TARGET_SCHEMA = "the schema that it goes to"
    NAMED_SCHEMAS = "each schema that it names"
    PARENTS = "each table that a foreign key refers to"
    LIKES = "each table of LIKE"
    REPLACED = "the view that it replaces"
    DATABASE = "the database"
    NAMED_ROLE = "the role that it names"
    BOTH_ROLES = "both roles"
    # Checked when a statement reads and writes.
    READ = "each relation that it reads"
    WRITTEN = "the table that it writes to"
    CONFLICTING = "the table, in ON CONFLICT DO UPDATE"
    LOCKED = "each table whose rows it locks"
    LOCKED_WHOLE = "each table that it locks"
    DRAWN = "each sequence that it draws from"
    SET = "each sequence that it sets"


@dataclass(frozen=True, slots=True)
class Need:
    right: str
    place: Place

    def __str__(self) -> str:
        match self.right:
            case "OWNER":
                return f"ownership of {self.place}"
            case "MEMBER":
                return f"membership in {self.place}"
            case "GRANT OPTION" | "ADMIN OPTION":
                return f"the {self.right.lower()}"
            case _ if self.place is Place.SELF:
                return self.right
            case _:
                return f"{self.right} on {self.place}"


_NAMED = Need("USAGE", Place.NAMED_SCHEMAS)
_READ = Need("SELECT", Place.READ)
_OWN = Need(OWNER, Place.OBJECT)
_CREATE_NEW = Need("CREATE", Place.NEW_SCHEMA)
_CREATE_ITS = Need("CREATE", Place.OBJECT_SCHEMA)
_CREATE_IN_DATABASE = Need("CREATE", Place.DATABASE)
_REFERENCES = Need("REFERENCES", Place.PARENTS)
_MEMBER = Need(MEMBER, Place.NAMED_ROLE)
_CREATEROLE = Need(CREATEROLE, Place.SELF)
_CREATEDB = Need(CREATEDB, Place.SELF)
_SUPERUSER = Need(SUPERUSER, Place.SELF)

_ALTER = (_OWN, _NAMED)
_NOTHING: tuple[Need, ...] = ()

# By the first keyword of queries and DML.
COMMANDS: dict[str, tuple[Need, ...]] = {
    "SELECT": (
        _READ,
        _NAMED,
        Need("UPDATE", Place.LOCKED),
        Need("USAGE", Place.DRAWN),
        Need("UPDATE", Place.SET),
    ),
    "INSERT": (
        Need("INSERT", Place.WRITTEN),
        _NAMED,
        _READ,
        Need("UPDATE", Place.CONFLICTING),
        Need("USAGE", Place.DRAWN),
    ),
    "UPDATE": (Need("UPDATE", Place.WRITTEN), _NAMED, _READ),
    "DELETE": (Need("DELETE", Place.WRITTEN), _NAMED, _READ),
    "MERGE": (
        Need("INSERT", Place.WRITTEN),
        Need("UPDATE", Place.WRITTEN),
        Need("DELETE", Place.WRITTEN),
        _NAMED,
        _READ,
    ),
}

# Rights that ALTER TABLE requires besides ownership of the table, by its actions.
ACTIONS: dict[type[t.AlterAction], tuple[Need, ...]] = {
    t.AddColumn: (_CREATE_ITS, _REFERENCES),
    t.AddConstraint: (_CREATE_ITS, _REFERENCES),
    t.AddIdentity: (_CREATE_ITS,),
    t.AddRowId: _NOTHING,
    t.AlterColumnType: _NOTHING,
    t.AlterPrimaryKey: (_CREATE_ITS,),
    t.DropColumn: _NOTHING,
    t.DropConstraint: _NOTHING,
    t.DropExpression: _NOTHING,
    t.DropIdentity: _NOTHING,
    t.DropNotNull: _NOTHING,
    t.DropRowId: _NOTHING,
    t.KeepAsItIs: _NOTHING,
    t.RenameColumn: _NOTHING,
    t.RenameConstraint: _NOTHING,
    t.RenameTable: (_CREATE_ITS,),
    t.SetColumnSetting: _NOTHING,
    t.SetParameters: _NOTHING,
    t.SetDefault: _NOTHING,
    t.SetExpression: _NOTHING,
    t.SetIdentity: _NOTHING,
    t.SetNotNull: _NOTHING,
    t.ValidateConstraint: _NOTHING,
}

STATEMENTS: dict[type[t.Statement], tuple[Need, ...]] = {
    # Tables.
    t.CreateTable: (_CREATE_NEW, _NAMED, _REFERENCES, Need("SELECT", Place.LIKES)),
    t.CreateTableAs: (_CREATE_NEW, _NAMED, _READ),
    t.CreateTemporary: (Need("TEMPORARY", Place.DATABASE),),
    t.DropTable: _ALTER,
    t.AlterTable: _ALTER,
    t.CreateIndex: (_OWN, _CREATE_ITS, _NAMED),
    t.DropIndex: _ALTER,
    o.TruncateTables: (Need("TRUNCATE", Place.WRITTEN), _NAMED),
    o.UndropTable: (_CREATE_NEW, _OWN),
    t.RevertChange: (_OWN,),
    # Other objects.
    o.CreateSequence: (_CREATE_NEW, _NAMED),
    o.AlterSequence: _ALTER,
    o.CreateEnum: (_CREATE_NEW,),
    o.AddEnumValue: _ALTER,
    o.RenameEnumValue: _ALTER,
    o.DropEnumValue: _ALTER,
    o.CreateView: (_CREATE_NEW, _NAMED, _READ, Need(OWNER, Place.REPLACED)),
    t.CreateMaterializedView: (_CREATE_NEW, _NAMED, _READ),
    o.RefreshView: _ALTER,
    o.CreateSchema: (_CREATE_IN_DATABASE, _MEMBER),
    o.CreateDatabase: (_CREATEDB, _MEMBER),
    o.DropObjects: _ALTER,
    o.RenameObject: (_OWN, _CREATE_ITS, _NAMED),
    o.MoveObject: (_OWN, Need("CREATE", Place.TARGET_SCHEMA), _NAMED),
    o.ChangeOwner: (_OWN, _MEMBER, Need("CREATE", Place.OWNERS_SCHEMA), _NAMED),
    o.CommentOn: _ALTER,
    o.Grant: (Need(GRANT_OPTION, Place.OBJECT), _NAMED),
    # Roles.
    o.CreateRole: (_CREATEROLE, _SUPERUSER),
    o.AlterRole: (_CREATEROLE, _SUPERUSER),
    o.RenameRole: (_CREATEROLE,),
    o.DropRoles: (_CREATEROLE,),
    o.GrantRoles: (Need(ADMIN_OPTION, Place.NAMED_ROLE),),
    o.ChangeDefaultPrivileges: (_MEMBER,),
    o.ReassignOwned: (Need(MEMBER, Place.BOTH_ROLES),),
    o.DropOwned: (_MEMBER,),
    o.CommentOnRole: (_CREATEROLE,),
    o.ChangeSettings: (_CREATEROLE, Need(OWNER, Place.DATABASE)),
    o.CreateShape: (Need(OWNER, Place.DATABASE),),
    o.DropShape: (Need(OWNER, Place.DATABASE),),
    # Sessions.
    s.Explain: (_NAMED, _READ, Need("INSERT", Place.WRITTEN)),
    s.CopyStream: (_NAMED, _READ, Need("INSERT", Place.WRITTEN)),
    s.LockTables: (Need("UPDATE", Place.LOCKED_WHOLE), _NAMED),
    s.Vacuum: _ALTER,
    # And superuser, or member of pg_read_server_files.
    s.ImportTable: (_CREATE_NEW, _NAMED, Need("INSERT", Place.WRITTEN)),
    s.ExportTable: (_NAMED, _READ),
    s.CreateFeed: (_NAMED, _READ),
    # And superuser, or a member of the role that has created it.
    s.DropFeed: _NOTHING,
    s.AdvanceFeed: _NOTHING,
    s.NeedlessStatement: (_OWN, _NAMED, _SUPERUSER),
    s.AcceptExtension: _NOTHING,
    s.Begin: _NOTHING,
    s.Commit: _NOTHING,
    s.Rollback: _NOTHING,
    s.Savepoint: _NOTHING,
    s.ReleaseSavepoint: _NOTHING,
    s.RollbackToSavepoint: _NOTHING,
    s.SetTransaction: _NOTHING,
    s.SetConstraints: _NOTHING,
    s.SetSetting: (_MEMBER, _SUPERUSER),
    s.ShowSetting: _NOTHING,
    s.ResetSetting: _NOTHING,
    s.Discard: _NOTHING,
    s.PrepareStatement: _NOTHING,
    s.ExecutePrepared: _NOTHING,
    s.Deallocate: _NOTHING,
    s.DeclareCursor: (_NAMED, _READ),
    s.FetchCursor: _NOTHING,
    s.CloseCursor: _NOTHING,
}

# Where it depends on the kind of the object.
KINDS: dict[tuple[type[t.Statement], ObjectKind], tuple[Need, ...]] = {
    (o.RenameObject, ObjectKind.TYPE): _ALTER,
    (o.RenameObject, ObjectKind.SCHEMA): (_OWN, _CREATE_IN_DATABASE),
    (o.RenameObject, ObjectKind.DATABASE): (_OWN, _CREATEDB),
    (o.ChangeOwner, ObjectKind.SCHEMA): (_OWN, _MEMBER, _CREATE_IN_DATABASE),
    (o.ChangeOwner, ObjectKind.DATABASE): (_OWN, _MEMBER, _CREATEDB),
}


def needs_of(statement: t.Statement) -> tuple[Need, ...]:
    """All rights that it may require; some of them only if the statement has that part."""
    kind = getattr(statement, "kind", None)
    found = KINDS.get((type(statement), kind)) if isinstance(kind, ObjectKind) else None
    needs = STATEMENTS[type(statement)] if found is None else found
    if isinstance(statement, t.AlterTable):
        needs = (*needs, *(need for action in statement.actions for need in ACTIONS[type(action)]))
    return tuple(dict.fromkeys(needs))


def rows() -> dict[str, tuple[Need, ...]]:
    """By name: the first word of a query, or the class of a statement, with the kind of object or the action."""
    found = dict(COMMANDS)
    found |= {statement.__name__: needs for statement, needs in STATEMENTS.items() if statement is not t.AlterTable}
    found |= {f"{statement.__name__} {kind}": needs for (statement, kind), needs in KINDS.items()}
    found |= {f"AlterTable {action.__name__}": (*_ALTER, *needs) for action, needs in ACTIONS.items()}
    return found

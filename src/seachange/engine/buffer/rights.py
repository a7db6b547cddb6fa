"""The privileges of a transaction: roles and access lists at the head of the catalog, plus its own pending changes.

**Invariant:** a statement is checked against roles and access lists of a head that was read after it arrived, whatever
its snapshot. The rights that a write or a definition needed are recorded (`required`), checked again at COMMIT, and the
versions of the descriptors that decided them are declared with the commit. A version that revokes a right raises
`min_version`, so a commit that is ordered after it and needed the right is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from seachange import errors
from seachange.engine.buffer.current_statement import CurrentStatement
from seachange.engine.buffer.pending_schema import PendingSchema
from seachange.engine.buffer.schema_view import SchemaView
from seachange.engine.replica.contents import Relation
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.schema_history import SchemaVersion
from seachange.model.ids import DescriptorId, KeyHash, Seq
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.access import DEFAULT_ROLE, Access, merge_access
from seachange.model.schema.actor import ROOT, Actor, actor_of
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import DEFAULT_SCHEMA, Database, Descriptor, Role
from seachange.model.schema.rights import (
    ROOT_IDENTITY,
    UNSAID,
    AdminOf,
    MemberOf,
    OnObject,
    OnUnsaid,
    Right,
    RoleAttribute,
    SessionIdentity,
    deciding_roles,
    find_actor,
    grants,
    may_administer,
)
from seachange.model.schema.temporary import is_temporary
from seachange.sql.change.object_access import describe
from seachange.storage.keys import unsaid_hash

_NO_ACCESS = Access(owner="")
# What leaves nothing behind that a commit could answer for.
_READING = ("SELECT",)


class Rights:
    """`RightsPort`: the rights of the role on whose behalf a statement runs."""

    def __init__(
        self, epoch: EpochState, pending: PendingSchema, statement: CurrentStatement, schema: SchemaView
    ) -> None:
        self._epoch = epoch
        self._pending = pending
        self._statement = statement
        self._schema = schema
        self._is_describing = False
        self.renew()
        # The owner of the view whose query is being bound.
        self._acting: str | None = None
        # Each right with the error message for its absence.
        self.required: dict[tuple[SessionIdentity, Right], str] = {}

    def renew(self) -> None:
        """Called when the node has caught up with the catalog. The schema is read after `applied`, so it includes all
        that is applied."""
        self._known_at: Seq = self._epoch.applied
        self._head: SchemaVersion = self._epoch.schemas.newest

    # Roles.

    @property
    def is_root(self) -> bool:
        """Whether it runs as the bootstrap superuser, which cannot lose a right."""
        return (
            self._statement.context.identity == ROOT_IDENTITY if self._acting is None else self._acting == DEFAULT_ROLE
        )

    @property
    def actor(self) -> Actor:
        """Raises 42501 if the role has been dropped, or the session may no longer act as it."""
        return (
            self._actor_of(self._statement.context.identity)
            if self._acting is None
            else actor_of(self._acting, self.roles)
        )

    def _actor_of(self, identity: SessionIdentity) -> Actor:
        if identity == ROOT_IDENTITY:
            return ROOT
        return find_actor(identity, self.roles) if self._pending.has_roles else self._head.actor(identity)

    @property
    def roles(self) -> Mapping[str, Role]:
        """Roles by name. Where both this transaction and a later commit changed a role, the committed version is used:
        only one of the two can commit."""
        if not self._pending.has_roles:
            return self._head.roles
        found = dict(self._head.roles)
        for before, after in self._pending.role_changes():
            now = self._head.objects.get(before.id) if before is not None else None
            if before is not None and (now is None or now.version != before.version):
                continue
            if before is not None:
                found.pop(before.name, None)
            if after is not None:
                found[after.name] = after
        return found

    @contextmanager
    def acting_as(self, role: str) -> Iterator[None]:
        before, self._acting = self._acting, role
        try:
            yield
        finally:
            self._acting = before

    @contextmanager
    def describing(self) -> Iterator[None]:
        before, self._is_describing = self._is_describing, True
        try:
            yield
        finally:
            self._is_describing = before

    # Access lists.

    def access_of(self, descriptor: Descriptor) -> Access:
        return self._access(descriptor.id)

    def _access(self, id_: DescriptorId) -> Access:
        """Of a dropped object, the last one."""
        now = self._head.find(id_)
        change = self._pending.change(id_)
        if change is not None:
            return _under_change(*change, now)
        return now.access if now is not None else self._lost_access(id_)

    def _lost_access(self, id_: DescriptorId) -> Access:
        descriptor = self._epoch.schemas.last_known(id_)
        if descriptor is None:
            dropped = (kept for kept in self._epoch.catalog.dropped() if kept.id == id_)
            descriptor = next((kept.body for kept in dropped), None)
        return descriptor.access if descriptor is not None else _NO_ACCESS

    def allows(self, right: Right) -> bool:
        return self._meets(right, self.actor)

    def require(self, right: Right, denial: str) -> None:
        """A right to write or define something, which is checked again at COMMIT."""
        if self.is_root:
            return
        if not self.allows(right):
            raise errors.InsufficientPrivilege(detail=denial)
        if self._acting is None:
            self.required.setdefault((self._statement.context.identity, right), denial)

    def check_access(self, descriptor: Relation, *privileges: str) -> None:
        if isinstance(descriptor, Table) and descriptor.materialized is not None:
            _check_materialized(descriptor, privileges, self._is_describing)
        # The role that everything belongs to at first can lose nothing.
        if self.is_root:
            return
        right, denial = OnObject(descriptor.id, privileges), f"permission denied for {describe(descriptor)}"
        space = None if is_temporary(descriptor.schema) else self.schema_right(descriptor.schema, "USAGE")
        if privileges == _READING:
            if not self.allows(right):
                raise errors.InsufficientPrivilege(detail=denial)
            if space is not None and not self.allows(space):
                raise errors.InsufficientPrivilege(detail=f"permission denied for schema {descriptor.schema}")
            return
        self.require(right, denial)
        if space is not None:
            self.require(space, f"permission denied for schema {descriptor.schema}")

    def schema_right(self, name: str, privilege: str, of: str | None = None) -> Right | None:
        """None for a schema that has no privileges: it belongs to the system."""
        found = self._schema.find_schema(name)
        if found is not None:
            return OnObject(found.id, (privilege,), of=of)
        if name != DEFAULT_SCHEMA:
            return None
        return OnUnsaid(ObjectKind.SCHEMA, self._statement.session.database, name, privilege, of)

    def _meets(self, right: Right, actor: Actor) -> bool:
        if isinstance(right, OnObject | OnUnsaid) and right.of is not None and not actor.superuser:
            actor = actor_of(right.of, self.roles)
        match right:
            case OnObject():
                return actor.superuser or grants(self._access(right.id), actor, right)
            case OnUnsaid():
                descriptor = self._unsaid(right)
                return actor.holds(descriptor.access if descriptor is not None else UNSAID[right.kind], right.privilege)
            case RoleAttribute(name):
                return actor.superuser or bool(getattr(actor, name))
            case MemberOf(role):
                return actor.superuser or role in actor.roles
            case AdminOf(role):
                return may_administer(actor, role, self.roles)

    def _unsaid(self, right: OnUnsaid) -> Descriptor | None:
        """The descriptor that has been created since for an object that had none."""
        if right.kind is ObjectKind.SCHEMA:
            return self._head.within(right.database).schemas.get(right.name)
        return next((o for o in self._head.objects.values() if isinstance(o, Database) and o.name == right.name), None)

    # At COMMIT.

    def mark(self) -> int:
        return len(self.required)

    def reset(self, mark: int) -> None:
        while len(self.required) > mark:
            self.required.popitem()

    def validate(self) -> None:
        """Raises 42501 unless the transaction still has every right that it used, as of what the node has applied."""
        if not self.required:
            return
        self.renew()
        for (identity, right), denial in self.required.items():
            if not self._meets(right, self._actor_of(identity)):
                raise errors.InsufficientPrivilege(detail=denial)

    def versions(self) -> dict[DescriptorId, int]:
        """The versions of the descriptors that decided the rights; below `min_version` the commit is refused."""
        deciding_versions = {}
        for identity, right in self.required:
            of = right.of if isinstance(right, OnObject | OnUnsaid) else None
            identities = [identity] if of is None else [identity, SessionIdentity(of, of, of)]
            roles = [role for each in identities for role in deciding_roles(each, self._head.roles)]
            deciding: list[Descriptor | None] = [*roles, self._decided_by(right)]
            deciding_versions.update({each.id: each.version for each in deciding if each is not None})
        return deciding_versions

    def _decided_by(self, right: Right) -> Descriptor | None:
        match right:
            case OnObject(id=id_):
                return self._head.find(id_)
            case OnUnsaid():
                return self._unsaid(right)
            case AdminOf(role):
                return self._head.roles.get(role)
            case _:
                return None

    def shares(self) -> dict[KeyHash, Seq]:
        """An object without a descriptor has no version; the commit that creates its descriptor writes this key."""
        return {
            unsaid_hash(right.kind.value, right.database, right.name): self._known_at
            for _, right in self.required
            if isinstance(right, OnUnsaid) and self._unsaid(right) is None
        }


def _under_change(before: Descriptor | None, after: Descriptor | None, now: Descriptor | None) -> Access:
    """The access list with the pending change, merged with a version that another transaction has published since."""
    if before is None or now is None or now.version == before.version:
        changed = after or before
        return changed.access if changed is not None else _NO_ACCESS
    merged = merge_access(before.access, after.access, now.access) if after is not None else None
    return merged or now.access


def _check_materialized(table: Table, privileges: Sequence[str], is_describing: bool) -> None:
    """Only REFRESH writes to a materialized view, and before it is filled nothing reads it."""
    if any(name not in _READING for name in privileges):
        raise errors.NotWritable(name=table.name)
    assert table.materialized is not None
    if not table.materialized.populated and not is_describing:
        raise errors.NotInPrerequisiteState(
            detail=f'materialized view "{table.name}" has not been populated: use the REFRESH MATERIALIZED VIEW command'
        )

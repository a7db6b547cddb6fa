"""The read side of Iceberg's REST catalog: databases are prefixes, schemas namespaces, and tables as of now.

**Invariant:** a role learns of a table only if it may connect to the database, use the schema and select from the
table, by the rights at the catalog's head; for all others the answer is that of a table that does not exist. No request
changes anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.replica.contents import Contents
from seachange.engine.replica.schema_history import SchemaVersion
from seachange.model.schema.access import DEFAULT_ROLE, UNSAID_DATABASE, UNSAID_SCHEMA, Access
from seachange.model.schema.actor import Actor, actor_of
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import DEFAULT_DATABASE, DEFAULT_SCHEMA
from seachange.model.schema.temporary import is_temporary
from seachange.server.http_message import HttpRequest, HttpResponse, json_response
from seachange.sql.settings.stored_settings import find_database

_ENDPOINTS = (
    "GET /v1/{prefix}/namespaces",
    "GET /v1/{prefix}/namespaces/{namespace}",
    "HEAD /v1/{prefix}/namespaces/{namespace}",
    "GET /v1/{prefix}/namespaces/{namespace}/tables",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
)
_NAMESPACES, _TABLES = "namespaces", "tables"


class RequestRefused(Exception):
    """The answer to a request that is not served."""

    def __init__(self, status: HTTPStatus, kind: str, message: str) -> None:
        super().__init__(message)
        self.response = problem(status, kind, message)


def problem(status: HTTPStatus, kind: str, message: str) -> HttpResponse:
    """An error as Iceberg's clients read it."""
    return json_response(status, {"error": {"message": message, "type": kind, "code": status.value}})


class IcebergCatalog:
    """What one role sees. Used on a thread, after the node has read the catalog's head."""

    def __init__(self, node: Node, user: str) -> None:
        self._node = node
        self._schema: SchemaVersion = node.epoch.schemas.newest
        role = self._schema.roles.get(user)
        if user != DEFAULT_ROLE and (role is None or not role.login):
            raise RequestRefused(HTTPStatus.UNAUTHORIZED, "NotAuthorizedException", "the role may not log in")
        self._actor: Actor = actor_of(user, self._schema.roles)

    def answer(self, request: HttpRequest) -> HttpResponse:
        """`request.parts` begin with iceberg, v1."""
        if request.method not in ("GET", "HEAD"):
            raise RequestRefused(
                HTTPStatus.FORBIDDEN, "ForbiddenException", "this catalog is read-only: use SQL to write"
            )
        match request.parts[2:]:
            case ("config",):
                return self._config(request.query.get("warehouse") or DEFAULT_DATABASE)
            case ("namespaces", *rest):
                return self._namespaces(DEFAULT_DATABASE, rest, request)
            case (database, "namespaces", *rest):
                return self._namespaces(database, rest, request)
            case _:
                raise RequestRefused(HTTPStatus.NOT_FOUND, "NoSuchEndpointException", "there is no such endpoint")

    def _config(self, database: str) -> HttpResponse:
        self._contents(database)
        content: Mapping[str, Any] = {"defaults": {}, "overrides": {"prefix": database}, "endpoints": _ENDPOINTS}
        return json_response(HTTPStatus.OK, content)

    def _namespaces(self, database: str, rest: list[str], request: HttpRequest) -> HttpResponse:
        contents = self._contents(database)
        match rest:
            case []:
                # Schemas are not nested.
                names = [] if request.query.get("parent") else self._schema_names(contents)
                return json_response(HTTPStatus.OK, {_NAMESPACES: [[name] for name in names]})
            case [schema]:
                self._check_schema(contents, schema)
                return json_response(HTTPStatus.OK, {"namespace": [schema], "properties": {}})
            case [schema, "tables"]:
                self._check_schema(contents, schema)
                names = sorted(table.name for table in self._tables(contents) if table.schema == schema)
                return json_response(
                    HTTPStatus.OK, {"identifiers": [{"namespace": [schema], "name": n} for n in names]}
                )
            case [schema, "tables", name]:
                return self._load(contents, schema, name, request)
            case _:
                raise RequestRefused(HTTPStatus.NOT_FOUND, "NoSuchEndpointException", "there is no such endpoint")

    def _load(self, contents: Contents, schema: str, name: str, request: HttpRequest) -> HttpResponse:
        table = contents.by_name.get((schema, name))
        if table is None or table not in self._tables(contents):
            raise RequestRefused(HTTPStatus.NOT_FOUND, "NoSuchTableException", f"table {schema}.{name} does not exist")
        if request.method != "GET":
            return json_response(HTTPStatus.OK, {})
        try:
            exported = self._node.exports.export(table.id)
        except errors.UndefinedTable:
            # It was dropped in the meantime.
            raise RequestRefused(
                HTTPStatus.NOT_FOUND, "NoSuchTableException", f"table {schema}.{name} does not exist"
            ) from None
        except (errors.NotMappable, errors.FeatureNotSupported) as found:
            raise RequestRefused(HTTPStatus.NOT_ACCEPTABLE, "UnsupportedOperationException", str(found)) from found
        metadata = exported.metadata
        # A client that loads a table often need not be sent its history each time.
        if request.query.get("snapshots") == "refs":
            newest = [each for each in metadata["snapshots"] if each["snapshot-id"] == exported.snapshot]
            metadata = metadata | {"snapshots": newest}
        content = {"metadata-location": exported.address, "metadata": metadata, "config": {}}
        return json_response(HTTPStatus.OK, content)

    # What the role sees.

    def _contents(self, database: str) -> Contents:
        found = find_database(database, self._schema.objects.values())
        access = found.access if found is not None else UNSAID_DATABASE
        if (found is None and database != DEFAULT_DATABASE) or not self._actor.holds(access, "CONNECT"):
            raise RequestRefused(
                HTTPStatus.NOT_FOUND, "NoSuchWarehouseException", f"warehouse {database} does not exist"
            )
        return self._schema.within(database)

    def _schema_names(self, contents: Contents) -> list[str]:
        names = {DEFAULT_SCHEMA, *contents.schemas, *(schema for schema, _ in contents.by_name)}
        return sorted(name for name in names if not is_temporary(name) and self._may_use(contents, name))

    def _may_use(self, contents: Contents, schema: str) -> bool:
        found = contents.schemas.get(schema)
        access: Access = found.access if found is not None else UNSAID_SCHEMA
        return self._actor.holds(access, "USAGE")

    def _check_schema(self, contents: Contents, schema: str) -> None:
        if schema not in self._schema_names(contents):
            raise RequestRefused(HTTPStatus.NOT_FOUND, "NoSuchNamespaceException", f"namespace {schema} does not exist")

    def _tables(self, contents: Contents) -> list[Table]:
        schemas = self._schema_names(contents)
        tables = (table for table in contents.by_id.values() if table.schema in schemas)
        return [table for table in tables if self._actor.holds(table.access, "SELECT")]

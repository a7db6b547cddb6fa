"""Types like regclass: objects by name or OID, as these types read and print them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from seachange import errors
from seachange.sql.pgcatalog.builtin import CATALOG_OIDS, PG_CATALOG, TYPE_BY_NAME
from seachange.sql.pgcatalog.deparse import full_name
from seachange.sql.pgcatalog.facts import Facts, object_oid, quote_name, type_name
from seachange.sql.port.port import TransactionPort


class Context(Protocol):
    """What a call may read."""

    @property
    def facts(self) -> Facts: ...

    @property
    def port(self) -> TransactionPort: ...


def name_parts(text: str) -> list[str]:
    """The parts of a qualified name, folded.

    >>> name_parts('Shop."My Table"'), name_parts('"shop" . t ')
    (['shop', 'My Table'], ['shop', 't'])
    """
    parts = re.findall(r'"((?:[^"]|"")*)"|([^".\s][^".]*)', text)
    return [quoted.replace('""', '"') if not plain else plain.strip().lower() for quoted, plain in parts]


def find_class(context: Context, text: str) -> int | None:
    if text.isdigit():
        return int(text)
    if text == "-":
        return 0
    names = name_parts(text)
    if not 1 <= len(names) <= 2:
        return None
    schema, name = (None, names[0]) if len(names) == 1 else (names[0], names[1])
    found = context.facts.find_relation(schema, name)
    if found is None and schema in (None, PG_CATALOG):
        return CATALOG_OIDS.get(name)
    return found


def _class_name(context: Context, oid: int) -> str:
    if oid == 0:
        return "-"
    relation = context.facts.relation_by_oid.get(oid)
    if relation is not None:
        return full_name(context.facts, relation)
    owner = context.facts.index_by_oid.get(oid)
    if owner is not None:
        table, index = owner
        is_visible = table.schema in context.facts.path
        return quote_name(index.name) if is_visible else f"{quote_name(table.schema)}.{quote_name(index.name)}"
    return next((name for name, number in CATALOG_OIDS.items() if number == oid), str(oid))


_MODIFIERS: Final = re.compile(r"\s*\([0-9, ]*\)")


def find_type(context: Context, text: str) -> int | None:
    if text.isdigit():
        return int(text)
    if text == "-":
        return 0
    plain = _MODIFIERS.sub("", " ".join(text.split()))
    array = plain.endswith("[]")
    plain = plain.removesuffix("[]").removeprefix("pg_catalog.")
    known = TYPE_BY_NAME.get(plain if plain.startswith('"') else plain.lower())
    if known is not None:
        return known.array if array else known.oid
    names = name_parts(plain)
    for enum in context.facts.enums:
        in_path = len(names) == 1 and enum.schema in context.facts.path
        if names[-1] == enum.name and (in_path or names[:-1] == [enum.schema]):
            return object_oid(enum.id)
    return None


def find_namespace(context: Context, text: str) -> int | None:
    return int(text) if text.isdigit() else context.facts.namespace_oids.get(name_parts(text)[0])


def _namespace_name(context: Context, oid: int) -> str:
    return next((quote_name(n.name) for n in context.facts.namespaces if n.oid == oid), str(oid))


def find_role(context: Context, text: str) -> int | None:
    return int(text) if text.isdigit() else context.facts.roles.get(name_parts(text)[0])


def _role_name(context: Context, oid: int) -> str:
    return quote_name(context.facts.role_names.get(oid, str(oid)))


def _type_name(context: Context, oid: int) -> str:
    return type_name(context.facts, oid)


@dataclass(frozen=True, slots=True)
class RegisteredType:
    """A type whose values are objects of one kind: how one is found by its name or OID, how it is printed, and the
    error if there is none."""

    find: Callable[[Context, str], int | None]
    name: Callable[[Context, int], str]
    missing: Callable[..., errors.Error]

    def read(self, context: Context, text: str) -> int:
        found = self.find(context, text)
        if found is None:
            raise self.missing(name=text)
        return found

    def print(self, context: Context, text: str) -> str:
        return self.name(context, self.read(context, text))

    def print_if_found(self, context: Context, text: str) -> str | None:
        return None if self.find(context, text) is None else self.print(context, text)


REGCLASS: Final = RegisteredType(find_class, _class_name, errors.UndefinedTable)
REGTYPE: Final = RegisteredType(find_type, _type_name, partial(errors.UndefinedObject, kind="type"))
REGNAMESPACE: Final = RegisteredType(find_namespace, _namespace_name, errors.InvalidSchemaName)
REGROLE: Final = RegisteredType(find_role, _role_name, partial(errors.UndefinedObject, kind="role"))
REGISTERED: Final = {"regclass": REGCLASS, "regtype": REGTYPE, "regnamespace": REGNAMESPACE, "regrole": REGROLE}

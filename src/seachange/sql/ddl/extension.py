"""CREATE EXTENSION: accepted for extensions whose functions are built in, rejected for others."""

from __future__ import annotations

from seachange import errors
from seachange.model.statements import AcceptExtension
from seachange.sql.ddl.object import take_cascade
from seachange.sql.text.names import read_list
from seachange.sql.text.tokens import Reader

# The functions that applications use of these are built in: gen_random_uuid, uuid_generate_v4.
BUILT_IN = frozenset({"plpgsql", "pgcrypto", "uuid-ossp"})


def read_create_extension(reader: Reader) -> AcceptExtension:
    reader.take("if", "not", "exists")
    name = _read_name(reader)
    reader.take("with")
    while (option := reader.take_any("schema", "version", "cascade")) is not None:
        if option != "cascade":
            reader.next()
    return AcceptExtension("CREATE EXTENSION", name)


def read_drop_extension(reader: Reader) -> AcceptExtension:
    reader.take("if", "exists")
    names = read_list(reader, _read_name)
    take_cascade(reader)
    return AcceptExtension("DROP EXTENSION", names[0])


def read_comment_extension(reader: Reader) -> AcceptExtension:
    name = _read_name(reader)
    reader.expect("is")
    if not reader.take("null"):
        reader.string()
    return AcceptExtension("COMMENT", name)


def _read_name(reader: Reader) -> str:
    name = reader.name()
    if name not in BUILT_IN:
        raise errors.FeatureNotSupported(
            feature=f"extension {name}",
            instead=f"The functions of {', '.join(sorted(BUILT_IN))} are built in; omit other extensions.",
        )
    return name

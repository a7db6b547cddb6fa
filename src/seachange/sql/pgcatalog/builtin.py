"""Built-in objects of PostgreSQL's catalogs, with their OIDs."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Final

PG_CATALOG: Final = "pg_catalog"
INFORMATION_SCHEMA: Final = "information_schema"

# Namespaces.
CATALOG_OID: Final = 11
PUBLIC_OID: Final = 2200
INFORMATION_OID: Final = 13000
# The bootstrap superuser, and the default database without a descriptor.
BOOTSTRAP_ROLE_OID: Final = 10
DATABASE_OID: Final = 5
# User-created objects have larger OIDs.

HEAP_OID: Final = 2
BTREE_OID: Final = 403

# Catalogs by which objects are classified.
_CATALOGS: Final = """
    pg_aggregate:2600 pg_am:2601 pg_amop:2602 pg_amproc:2603 pg_attrdef:2604 pg_attribute:1249
    pg_auth_members:1261 pg_authid:1260 pg_cast:2605 pg_class:1259 pg_collation:3456 pg_constraint:2606
    pg_conversion:2607 pg_database:1262 pg_db_role_setting:2964 pg_default_acl:826 pg_depend:2608
    pg_description:2609 pg_enum:3501 pg_event_trigger:3466 pg_extension:3079 pg_foreign_data_wrapper:2328
    pg_foreign_server:1417 pg_foreign_table:3118 pg_index:2610 pg_inherits:2611 pg_init_privs:3394
    pg_language:2612 pg_largeobject:2613 pg_largeobject_metadata:2995 pg_namespace:2615 pg_opclass:2616
    pg_operator:2617 pg_opfamily:2753 pg_parameter_acl:6243 pg_partitioned_table:3350 pg_policy:3256 pg_proc:1255
    pg_publication:6104 pg_publication_namespace:6237 pg_publication_rel:6106 pg_range:3541
    pg_replication_origin:6000 pg_rewrite:2618 pg_seclabel:3596 pg_sequence:2224 pg_shdepend:1214
    pg_shdescription:2396 pg_shseclabel:3592 pg_statistic:2619 pg_statistic_ext:3381 pg_statistic_ext_data:3429
    pg_subscription:6100 pg_subscription_rel:6102 pg_tablespace:1213 pg_transform:3576 pg_trigger:2620
    pg_ts_config:3602 pg_ts_config_map:3603 pg_ts_dict:3600 pg_ts_parser:3601 pg_ts_template:3764 pg_type:1247
    pg_user_mapping:1418
"""
CATALOG_OIDS: Final[dict[str, int]] = {name: int(oid) for name, oid in (each.split(":") for each in _CATALOGS.split())}


@dataclass(frozen=True, slots=True)
class BuiltinType:
    """`formatted` is its name in format_type; `opclass` is the OID of its default B-tree operator class."""

    oid: int
    name: str
    length: int
    by_value: bool
    type: str
    category: str
    preferred: bool
    element: int
    array: int
    input: str
    align: str
    storage: str
    collation: int
    formatted: str
    opclass: int = 0


ARRAY_OPCLASS: Final = 10000
ENUM_OPCLASS: Final = 10069


def _read(line: str) -> BuiltinType:
    """A line of builtin_types.txt: oid name length by-value type category preferred element array input align storage
    collation opclass, and the formatted name."""
    oid, name, length, by_value, type_, category, preferred, element, array, *rest = line.split(maxsplit=14)
    input_, align, storage, collation, opclass, formatted = rest
    return BuiltinType(
        int(oid),
        name,
        int(length),
        by_value == "t",
        type_,
        category,
        preferred == "t",
        int(element),
        int(array),
        input_,
        align,
        storage,
        int(collation),
        formatted,
        int(opclass),
    )


def _arrays(types: tuple[BuiltinType, ...]) -> tuple[BuiltinType, ...]:
    return tuple(
        BuiltinType(
            t.array, f"_{t.name}", -1, False, "p" if t.type == "p" else "b", "P" if t.type == "p" else "A", False,
            t.oid, 0, "array_in", "d" if t.align == "d" else "i", "x", t.collation, f"{t.formatted}[]", ARRAY_OPCLASS,
        )
        for t in types
        if t.array
    )  # fmt: skip


_SCALARS: Final = tuple(
    map(_read, files("seachange.sql.pgcatalog").joinpath("builtin_types.txt").read_text().splitlines())
)
TYPES: Final[tuple[BuiltinType, ...]] = (*_SCALARS, *_arrays(_SCALARS))
TYPE_BY_OID: Final[dict[int, BuiltinType]] = {t.oid: t for t in TYPES}
TYPE_BY_NAME: Final[dict[str, BuiltinType]] = {
    **{t.name: t for t in TYPES},
    **{t.formatted: t for t in TYPES},
    **{alias: TYPE_BY_OID[oid] for alias, oid in (("int", 23), ("decimal", 1700), ("float", 701), ("bool", 16))},
    **{alias: TYPE_BY_OID[oid] for alias, oid in (("timestamp", 1114), ("timestamptz", 1184), ("time", 1083))},
}

"""Built-in objects of PostgreSQL's catalogs, with their OIDs."""

from __future__ import annotations

from dataclasses import dataclass
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
FIRST_USER_OID: Final = 16384

HEAP_OID: Final = 2
BTREE_OID: Final = 403
ACCESS_METHODS: Final = ((HEAP_OID, "heap", "t", "heap_tableam_handler"), (BTREE_OID, "btree", "i", "bthandler"))
TABLESPACES: Final = ((1663, "pg_default"), (1664, "pg_global"))
LANGUAGES: Final = ((12, "internal", False), (13, "c", False), (14, "sql", True))

DEFAULT_COLLATION_OID: Final = 100
# OID, name, provider and locale.
COLLATIONS: Final = (
    (DEFAULT_COLLATION_OID, "default", "d", None),
    (950, "C", "c", "C"),
    (951, "POSIX", "c", "POSIX"),
)

# Catalogs by which objects are classified.
CATALOG_OIDS: Final[dict[str, int]] = {
    "pg_type": 1247,
    "pg_attribute": 1249,
    "pg_proc": 1255,
    "pg_class": 1259,
    "pg_authid": 1260,
    "pg_database": 1262,
    "pg_constraint": 2606,
    "pg_attrdef": 2604,
    "pg_index": 2610,
    "pg_namespace": 2615,
    "pg_description": 2609,
    "pg_rewrite": 2618,
    "pg_trigger": 2620,
    "pg_extension": 3079,
    "pg_collation": 3456,
    "pg_enum": 3501,
    "pg_sequence": 2224,
    "pg_opclass": 2616,
    "pg_opfamily": 2753,
    "pg_am": 2601,
    "pg_operator": 2617,
    "pg_language": 2612,
    "pg_tablespace": 1213,
    "pg_event_trigger": 3466,
    "pg_publication": 6104,
    "pg_cast": 2605,
    "pg_conversion": 2607,
    "pg_policy": 3256,
}


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


# One line for each: oid name length by-value type category preferred element array input align storage collation
# opclass, and its formatted name.
_TYPES: Final = """
16 bool 1 t b B t 0 1000 boolin c p 0 10003 boolean
17 bytea -1 f b U f 0 1001 byteain i x 0 10006 bytea
18 char 1 t b Z f 0 1002 charin c p 0 10007 "char"
19 name 64 f b S f 18 1003 namein c p 950 10028 name
20 int8 8 t b N f 0 1016 int8in d p 0 3124 bigint
21 int2 2 t b N f 0 1005 int2in s p 0 1979 smallint
22 int2vector -1 f b A f 21 1006 int2vectorin i p 0 0 int2vector
23 int4 4 t b N f 0 1007 int4in i p 0 1978 integer
24 regproc 4 t b N f 0 1008 regprocin i p 0 1981 regproc
25 text -1 f b S t 0 1009 textin i x 100 3126 text
26 oid 4 t b N t 0 1028 oidin i p 0 1981 oid
28 xid 4 t b U f 0 1011 xidin i p 0 0 xid
30 oidvector -1 f b A f 26 1013 oidvectorin i p 0 10032 oidvector
114 json -1 f b U f 0 199 json_in i x 0 0 json
194 pg_node_tree -1 f b Z f 0 0 pg_node_tree_in i x 100 0 pg_node_tree
700 float4 4 t b N f 0 1021 float4in i p 0 10012 real
701 float8 8 t b N t 0 1022 float8in d p 0 3123 double precision
705 unknown -2 f p X f 0 0 unknownin c p 0 0 unknown
869 inet -1 f b I t 0 1041 inet_in i m 0 10015 inet
1033 aclitem 16 f b U f 0 1034 aclitemin d p 0 0 aclitem
1042 bpchar -1 f b S f 0 1014 bpcharin i x 100 10004 character
1043 varchar -1 f b S f 0 1015 varcharin i x 100 3126 character varying
1082 date 4 t b D f 0 1182 date_in i p 0 3122 date
1083 time 8 t b D f 0 1183 time_in d p 0 10038 time without time zone
1114 timestamp 8 t b D f 0 1115 timestamp_in d p 0 3128 timestamp without time zone
1184 timestamptz 8 t b D t 0 1185 timestamptz_in d p 0 3127 timestamp with time zone
1186 interval 16 f b T t 0 1187 interval_in d p 0 10022 interval
1266 timetz 12 f b D f 0 1270 timetz_in d p 0 10041 time with time zone
1560 bit -1 f b V f 0 1561 bit_in i x 0 10002 bit
1562 varbit -1 f b V t 0 1563 varbit_in i x 0 10043 bit varying
1700 numeric -1 f b N f 0 1231 numeric_in i m 0 3125 numeric
2202 regprocedure 4 t b N f 0 2207 regprocedurein i p 0 1981 regprocedure
2205 regclass 4 t b N f 0 2210 regclassin i p 0 1981 regclass
2206 regtype 4 t b N f 0 2211 regtypein i p 0 1981 regtype
2249 record -1 f p P f 0 2287 record_in d x 0 10034 record
2275 cstring -2 f p P f 0 1263 cstring_in c p 0 0 cstring
2276 any 4 t p P f 0 0 any_in i p 0 0 "any"
2277 anyarray -1 f p P f 0 0 anyarray_in d x 0 10000 anyarray
2278 void 4 t p P f 0 0 void_in i p 0 0 void
2279 trigger 4 t p P f 0 0 trigger_in i p 0 0 trigger
2283 anyelement 4 t p P f 0 0 anyelement_in i p 0 0 anyelement
2950 uuid 16 f b U f 0 2951 uuid_in c p 0 10065 uuid
3500 anyenum 4 t p P f 0 0 anyenum_in i p 0 10069 anyenum
3802 jsonb -1 f b U f 0 3807 jsonb_in i x 0 10088 jsonb
4089 regnamespace 4 t b N f 0 4090 regnamespacein i p 0 1981 regnamespace
4096 regrole 4 t b N f 0 4097 regrolein i p 0 1981 regrole
"""
# The name of an operator class and of its family, by OID.
OPCLASSES: Final[dict[int, tuple[str, int]]] = {
    10000: ("array_ops", 397),
    10003: ("bool_ops", 424),
    10004: ("bpchar_ops", 426),
    10006: ("bytea_ops", 428),
    10007: ("char_ops", 429),
    10028: ("name_ops", 1994),
    3122: ("date_ops", 434),
    10012: ("float4_ops", 1970),
    3123: ("float8_ops", 1970),
    1979: ("int2_ops", 1976),
    1978: ("int4_ops", 1976),
    3124: ("int8_ops", 1976),
    10022: ("interval_ops", 1982),
    3125: ("numeric_ops", 1988),
    1981: ("oid_ops", 1989),
    3126: ("text_ops", 1994),
    10038: ("time_ops", 1996),
    3127: ("timestamptz_ops", 434),
    3128: ("timestamp_ops", 434),
    10065: ("uuid_ops", 2968),
    10069: ("enum_ops", 3522),
    10088: ("jsonb_ops", 4033),
}
ARRAY_OPCLASS: Final = 10000
ENUM_OPCLASS: Final = 10069


def _read(line: str) -> BuiltinType:
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


_SCALARS: Final = tuple(_read(line) for line in _TYPES.strip().splitlines())
TYPES: Final[tuple[BuiltinType, ...]] = (*_SCALARS, *_arrays(_SCALARS))
TYPE_BY_OID: Final[dict[int, BuiltinType]] = {t.oid: t for t in TYPES}
TYPE_BY_NAME: Final[dict[str, BuiltinType]] = {
    **{t.name: t for t in TYPES},
    **{t.formatted: t for t in TYPES},
    **{alias: TYPE_BY_OID[oid] for alias, oid in (("int", 23), ("decimal", 1700), ("float", 701), ("bool", 16))},
    **{alias: TYPE_BY_OID[oid] for alias, oid in (("timestamp", 1114), ("timestamptz", 1184), ("time", 1083))},
}

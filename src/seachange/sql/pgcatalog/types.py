"""The rows of pg_type and pg_enum: built-in types, user-defined types, and row types."""

from __future__ import annotations

from seachange.model.schema.objects import EnumType
from seachange.model.schema.objects import Sequence as SequenceObject
from seachange.sql.pgcatalog.builtin import CATALOG_OID, TYPES
from seachange.sql.pgcatalog.facts import Facts, Relation, Rows, array_oid, object_oid, part_oid
from seachange.values.types import ENUM_WIDTH


def built_in_types(_: Facts) -> Rows:
    for t in TYPES:
        yield {
            "oid": t.oid,
            "typname": t.name,
            "typnamespace": CATALOG_OID,
            "typowner": 10,
            "typlen": t.length,
            "typbyval": t.by_value,
            "typtype": t.type,
            "typcategory": t.category,
            "typispreferred": t.preferred,
            "typisdefined": True,
            "typdelim": ",",
            "typelem": t.element,
            "typsubscript": "array_subscript_handler" if t.name.startswith("_") else "-",
            "typarray": t.array,
            "typinput": t.input,
            "typoutput": t.input.removesuffix("in") + "out",
            "typreceive": t.input.removesuffix("in") + "recv",
            "typsend": t.input.removesuffix("in") + "send",
            "typmodin": "-",
            "typmodout": "-",
            "typanalyze": "-",
            "typalign": t.align,
            "typstorage": t.storage,
            "typtypmod": -1,
            "typcollation": t.collation,
        }


def pg_type(facts: Facts) -> Rows:
    """Those of users."""
    for enum in facts.enums:
        yield from _type_pair(facts, enum, "e", "E", "enum", ENUM_WIDTH)
    for relation in facts.relations:
        if not isinstance(relation, SequenceObject):
            yield from _type_pair(facts, relation, "c", "C", "record", -1)


def _type_pair(facts: Facts, owner: EnumType | Relation, type_: str, category: str, stem: str, length: int) -> Rows:
    shared = {
        "typnamespace": facts.namespace_oids.get(owner.schema, 0),
        "typowner": facts.owner_oid(owner.access),
        "typisdefined": True,
        "typdelim": ",",
        "typmodin": "-",
        "typmodout": "-",
        "typanalyze": "-",
        "typtypmod": -1,
    }
    yield {
        **shared,
        "oid": object_oid(owner.id),
        "typname": owner.name,
        "typlen": length,
        "typbyval": length > 0,
        "typtype": type_,
        "typcategory": category,
        "typrelid": object_oid(owner.id) if type_ == "c" else 0,
        "typsubscript": "-",
        "typarray": array_oid(owner.id),
        "typinput": f"{stem}_in",
        "typoutput": f"{stem}_out",
        "typreceive": f"{stem}_recv",
        "typsend": f"{stem}_send",
        "typalign": "i" if type_ == "e" else "d",
        "typstorage": "p" if type_ == "e" else "x",
    }
    yield {
        **shared,
        "oid": array_oid(owner.id),
        "typname": f"_{owner.name}",
        "typlen": -1,
        "typtype": "b",
        "typcategory": "A",
        "typelem": object_oid(owner.id),
        "typsubscript": "array_subscript_handler",
        "typinput": "array_in",
        "typoutput": "array_out",
        "typreceive": "array_recv",
        "typsend": "array_send",
        "typalign": "i" if type_ == "e" else "d",
        "typstorage": "x",
    }


def pg_enum(facts: Facts) -> Rows:
    for enum in facts.enums:
        for number, value in enumerate(sorted(enum.values, key=lambda v: v.rank), 1):
            owner = {"oid": part_oid(enum.id, value.id), "enumtypid": object_oid(enum.id)}
            yield {**owner, "enumsortorder": float(number), "enumlabel": value.label}

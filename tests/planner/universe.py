"""One element of every kind, joined to each other in every way that the rules know."""

from typing import Any

from seachange.model.change import elements
from seachange.model.change.elements import Element
from seachange.model.ids import ColumnId
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.expression import Expression
from seachange.values.types import BIGINT, TEXT, SqlType

DATABASE, SCHEMA, TABLE, PARENT, SEQUENCE, TYPE, VIEW, OTHER_VIEW, STORED = range(1, 10)
SPACE = ("d", "s")
# Ids are numbers; that they have types of their own would only be in the way here.
make: Any = elements


def _object(id_: int, kind: ObjectKind, name: str) -> list[Element]:
    return [
        make.NamespaceElement(id_, kind, *SPACE, name),
        make.Owner(id_, "someone"),
        make.Privileges(id_, "someone", ("SELECT",)),
        make.Comment(id_, "text"),
    ]


def _column(table: int, id_: int, **fields: Any) -> list[Element]:
    return [
        make.ColumnElement(table, id_, **fields),
        make.ColumnName(table, id_, f"c{id_}"),
        make.ColumnType(table, id_, SqlType(TEXT.kind, enum=TYPE) if id_ == 3 else BIGINT),
        make.ColumnNotNull(table, id_),
    ]


def _index(index: Any) -> list[Element]:
    place = (index.table_id, index.index_id)
    return [index, make.IndexName(*place, f"i{index.index_id}"), make.KeyConstraint(*place), make.IndexData(*place)]


UNIVERSE: tuple[Element, ...] = (
    make.DatabaseElement(DATABASE),
    make.NamespaceElement(DATABASE, ObjectKind.DATABASE, "", "", "d"),
    make.SchemaElement(SCHEMA),
    make.NamespaceElement(SCHEMA, ObjectKind.SCHEMA, "d", "", "s"),
    make.TableElement(TABLE),
    *_object(TABLE, ObjectKind.TABLE, "t"),
    *_column(TABLE, 1),
    *_column(TABLE, 2),
    *_column(TABLE, 3),
    *_column(TABLE, 5),
    make.ColumnDefault(TABLE, 1, "nextval('q')", (SEQUENCE,)),
    make.ColumnCompression(TABLE, 1, "zstd"),
    make.ColumnStatistics(TABLE, 1, 100),
    make.TableParameter(TABLE, "seachange.iceberg", "on"),
    make.ColumnIdentity(TABLE, 2, SEQUENCE, True),
    make.ColumnGenerated(TABLE, 3, Expression("c1", (ColumnId(1),))),
    make.ColumnDown(TABLE, 1, Expression("c4", (ColumnId(4),))),
    make.ConvertedColumn(TABLE, 4, Expression("c1 + c6", (ColumnId(1), ColumnId(6))), in_place_of=1),
    make.ColumnName(TABLE, 4, "c4"),
    make.ColumnType(TABLE, 4, BIGINT),
    make.RestoredColumn(TABLE, 6, 99),
    make.ColumnName(TABLE, 6, "c6"),
    make.ColumnType(TABLE, 6, BIGINT),
    make.ColumnNotNull(TABLE, 6),
    *_index(make.PrimaryIndex(TABLE, 10, (1,), rebuilt_ids=(4, 5), replaces_id=19, proof_id=11)),
    *_index(make.UniqueIndex(TABLE, 11, (1,))),
    *_index(make.UniqueIndex(TABLE, 12, (2, 4, 6), source_id=10)),
    *_index(make.SecondaryIndex(TABLE, 13, (3,), source_id=10)),
    *_index(make.PrimaryIndex(TABLE, 19, (2,))),
    make.CheckConstraint(TABLE, 1, "c1 > 0 and c4 > c6", (1, 4, 6)),
    make.ConstraintName(TABLE, 1, "k1"),
    make.ForeignKeyElement(TABLE, 2, (2,), PARENT, 15),
    make.ForeignKeyParent(PARENT, TABLE, 2),
    make.ConstraintName(TABLE, 2, "k2"),
    make.TableElement(PARENT),
    *_object(PARENT, ObjectKind.TABLE, "p"),
    *_column(PARENT, 1),
    *_index(make.PrimaryIndex(PARENT, 14, (1,))),
    *_index(make.UniqueIndex(PARENT, 15, (1,))),
    make.SequenceElement(SEQUENCE),
    *_object(SEQUENCE, ObjectKind.SEQUENCE, "q"),
    make.SequenceSettings(SEQUENCE, BIGINT, 1, 1, 9, 1, 1, False),
    make.SequenceOwnerElement(SEQUENCE, TABLE, 1),
    make.SequenceStart(SEQUENCE, 1, 1),
    make.EnumTypeElement(TYPE),
    *_object(TYPE, ObjectKind.TYPE, "e"),
    make.EnumValue(TYPE, 1, 1.0),
    make.EnumLabel(TYPE, 1, "sad"),
    make.ViewElement(VIEW),
    *_object(VIEW, ObjectKind.VIEW, "v"),
    make.ViewQuery(VIEW, "select", ("c1",), (TABLE,), ((TABLE, 1),)),
    make.ViewElement(OTHER_VIEW),
    *_object(OTHER_VIEW, ObjectKind.VIEW, "w"),
    make.ViewQuery(OTHER_VIEW, "select", ("c1",), (VIEW,), ()),
    make.TableElement(STORED),
    *_object(STORED, ObjectKind.MATERIALIZED_VIEW, "m"),
    make.ViewQuery(STORED, "select", ("c1",), (TABLE,), ((TABLE, 1),)),
    make.ViewRows(STORED, True),
)

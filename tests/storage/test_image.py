"""An image of one index: what is visible at which snapshot, over inline rows, files and tombstones, in any mixture."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, product
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from seachange import errors
from seachange.model.ids import ColumnId, GenerationId, IndexId, LayoutId, SegmentId, Seq, TableId
from seachange.model.schema.descriptor import Column, Index, Layout, Table
from seachange.model.segments import (
    Generation,
    GenerationMember,
    IndexContents,
    IndexDelta,
    Op,
    Segment,
    SegmentKind,
)
from seachange.runtime.filesystem import LocalFileSystem
from seachange.storage.arrow import schema_of
from seachange.storage.batches import BatchCodec, seal_batch
from seachange.storage.image import ImageShape, IndexImage
from seachange.storage.keys import KeyCodec
from seachange.storage.plan import Overlay, plan_scan
from seachange.storage.segment_writer import SegmentShape, SegmentWriter
from seachange.storage.warehouse import Warehouse
from seachange.values.types import BIGINT, TEXT, Kind, SqlType

ID, VALUE = ColumnId(1), ColumnId(2)
COLUMNS = ((ID, BIGINT), (VALUE, TEXT))
INDEX = Index(IndexId(7), "t_pkey", (ID,), unique=True)
TABLE = Table(
    id=TableId(1),
    version=1,
    schema="public",
    name="t",
    columns=(Column(ID, "id", BIGINT, nullable=False), Column(VALUE, "value", TEXT)),
    primary=INDEX,
    secondary=(),
    layouts=(Layout(LayoutId(1), COLUMNS),),
    next_column_id=ColumnId(3),
)
Rows = dict[int, str]


class Bench:
    """Makes segments and batches, and reads images of them."""

    def __init__(self, folder: Path) -> None:
        self.files = LocalFileSystem(folder)
        self.warehouse = Warehouse(self.files)
        self._ids = count(1)
        self._duck = duckdb.connect()
        self._made: dict[tuple[Any, ...], Segment] = {}

    def close(self) -> None:
        self._duck.close()

    def segment(self, seq: int, rows: Rows | Sequence[int], fresh: bool = False) -> Segment:
        """A file of rows or, where only keys are given, of tombstones."""
        data = isinstance(rows, dict)
        kind, columns = (SegmentKind.DATA, COLUMNS) if data else (SegmentKind.TOMBSTONES, COLUMNS[:1])
        shape = SegmentShape(columns, (ID,), INDEX.id, LayoutId(1), kind, fresh)
        keys = sorted(rows)
        arrays = [pa.array(keys, pa.int64()), pa.array([rows[k] for k in keys]) if data else None]
        table = pa.Table.from_arrays([a for a in arrays if a is not None], schema=schema_of(columns))
        writer = SegmentWriter(self.files, shape, lambda n: [SegmentId(next(self._ids)) for _ in range(n)])
        (written,) = writer.write(table)
        return _at(written, seq)

    def made_once(self, seq: int, rows: Rows | Sequence[int], fresh: bool) -> Segment:
        name = (seq, isinstance(rows, dict), fresh)
        if name not in self._made:
            self._made[name] = self.segment(seq, rows, fresh)
        return self._made[name]

    def image(self, deltas: Sequence[IndexDelta] = (), generation: Generation | None = None) -> IndexImage:
        contents = IndexContents(INDEX.id, Seq(100), generation, tuple(deltas))
        shape = ImageShape(INDEX.id, 1, 0, lambda _: COLUMNS, lambda: COLUMNS[:1], lambda: "t")
        return IndexImage(shape, KeyCodec([BIGINT]), self.warehouse, contents)

    def scan(self, image: IndexImage, snapshot: int) -> Rows:
        parts = image.parts(Seq(snapshot))
        scan = plan_scan(TABLE, INDEX, TABLE.columns, parts, Overlay(), self.warehouse, "s")
        for name, relation in scan.relations.items():
            self._duck.register(name, relation)
        found = self._duck.execute(scan.sql, dict(scan.parameters)).fetchall()
        assert len(found) == len({key for key, _ in found}), found
        return dict(found)

    def look_up(self, image: IndexImage, snapshot: int, keys: Sequence[int] = range(6)) -> Rows:
        found = ((key, image.get((key,), Seq(snapshot))) for key in keys)
        return {key: hit.row[1] for key, hit in found if hit is not None}


def _at(segment: Segment, seq: int) -> Segment:
    return replace(segment, seq=Seq(seq))


def inline(seq: int, *changes: tuple[Op, int, str | None]) -> IndexDelta:
    ops = [int(op) for op, _, _ in changes]
    payload = BatchCodec(COLUMNS).encode(ops, [(key, value) for _, key, value in changes])
    return IndexDelta(Seq(seq), (seal_batch(INDEX.id, LayoutId(1), len(ops), payload),), ())


def in_files(seq: int, *segments: Segment) -> IndexDelta:
    return IndexDelta(Seq(seq), (), segments)


def generation(base: int, *members: GenerationMember) -> Generation:
    return Generation(GenerationId(1), INDEX.id, Seq(base), Seq(base + 1), members)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.close()


def test_every_order_of_versions_of_one_entry(bench: Bench):
    """Put, tombstone and insert, each inline or as a file, in every order, over a base with or without the key."""
    base = bench.segment(10, {1: "base", 2: "other"})
    empty = bench.segment(10, {2: "other"})
    forms = [(op, form) for op in ("put", "delete") for form in ("inline", "file")]
    for has_base, *chain in product([True, False], forms, forms, forms):
        exists, deltas, expected = has_base, [], [{1: "base", 2: "other"} if has_base else {2: "other"}]
        for seq, (op, form) in enumerate(chain, start=11):
            deltas.append(_version(bench, seq, op, form, exists))
            exists = op == "put"
            expected.append({1: f"v{seq}", 2: "other"} if exists else {2: "other"})
        members = GenerationMember(base if has_base else empty)
        image = bench.image(deltas, generation(10, members))
        for seq, state in enumerate(expected, start=10):
            assert bench.look_up(image, seq) == state, (has_base, chain, seq)
            assert bench.scan(image, seq) == state, (has_base, chain, seq)


def _version(bench: Bench, seq: int, op: str, form: str, exists: bool) -> IndexDelta:
    if form == "inline":
        kind = Op.TOMBSTONE if op == "delete" else Op.PUT if exists else Op.INSERT
        return inline(seq, (kind, 1, f"v{seq}" if op == "put" else None))
    # A tombstone for an entry that does not exist hides nothing, and does no harm.
    return in_files(seq, bench.made_once(seq, {1: f"v{seq}"} if op == "put" else [1], op == "put" and not exists))


def test_following_gives_what_loading_gives(bench: Bench):
    """An image that was scanned after every delta, and one that was loaded with all of them."""
    deltas = [
        inline(11, (Op.PUT, 1, "a"), (Op.INSERT, 5, "five")),
        in_files(12, bench.segment(12, {1: "b", 2: "b"})),
        inline(13, (Op.TOMBSTONE, 2, None)),
        in_files(14, bench.segment(14, [5]), bench.segment(14, {3: "c"})),
        inline(15, (Op.INSERT, 2, "again"), (Op.PUT, 1, "d")),
    ]
    start = generation(10, GenerationMember(bench.segment(10, {1: "base", 2: "base", 3: "base"})))
    following = bench.image((), start)
    following.applied = Seq(10)
    for delta in deltas:
        bench.scan(following, delta.seq - 1)
        following.apply(delta)
    loaded = bench.image(deltas, start)
    for seq in range(10, 16):
        assert bench.scan(following, seq) == bench.scan(loaded, seq) == bench.look_up(loaded, seq), seq
    assert bench.scan(loaded, 15) == {1: "d", 2: "again", 3: "c"}


def test_applying_twice_changes_nothing(bench: Bench):
    image = bench.image()
    image.applied = Seq(10)
    delta = inline(11, (Op.INSERT, 1, "a"))
    image.apply(delta)
    image.apply(delta)
    assert bench.scan(image, 11) == {1: "a"}


def test_a_generation_hides_positions(bench: Bench):
    old, new = bench.segment(4, {1: "old", 2: "old", 3: "old"}), bench.segment(6, {1: "new"})
    hidden = GenerationMember(old, deleted=(0).to_bytes(4, "little") + (2).to_bytes(4, "little"))
    image = bench.image((), generation(10, hidden, GenerationMember(new)))
    assert bench.scan(image, 10) == bench.look_up(image, 10) == {1: "new", 2: "old"}


def test_a_scan_that_fails_leaves_nothing_visible_that_is_not(bench: Bench):
    """A file that cannot be read fails the scan; once it can be read again the next one is right."""
    base = bench.segment(10, {1: "base", 2: "base"})
    image = bench.image([inline(11, (Op.PUT, 1, "new"))], generation(10, GenerationMember(base)))
    path = Path(bench.files.path(bench.warehouse.name(base.id)))
    aside = path.with_name("aside")
    path.rename(aside)
    bench.warehouse.forget(base.id)
    with pytest.raises(errors.SegmentDamaged):
        image.parts(Seq(11))
    aside.rename(path)
    assert bench.scan(image, 11) == {1: "new", 2: "base"}


def test_is_empty(bench: Bench):
    image = bench.image([in_files(11, bench.segment(11, {1: "a"}, fresh=True)), inline(12, (Op.TOMBSTONE, 1, None))])
    assert [image.is_empty(Seq(seq)) for seq in (10, 11, 12)] == [True, False, True]


def test_rows_that_are_the_same_are_the_same_table(bench: Bench):
    """A session registers a table with DuckDB only if it is another one."""
    image = bench.image([inline(10, (Op.PUT, 1, "a"), (Op.PUT, 2, "b")), inline(11, (Op.PUT, 1, "c"))])

    def rows(snapshot: int) -> pa.Table:
        ((_, table),) = image.parts(Seq(snapshot)).inline
        return table

    first = rows(11)
    assert rows(11) is first
    assert rows(10).to_pylist() != first.to_pylist()
    image.apply(inline(101, (Op.PUT, 3, "d")))
    assert rows(100).to_pylist() == first.to_pylist()
    assert rows(101).num_rows == 3
    assert rows(102) is rows(101)
    image.apply(inline(103, (Op.TOMBSTONE, 3, None)))
    assert rows(103).to_pylist() == first.to_pylist()


def test_a_table_with_more_rows_than_changes_is_not_empty_whatever_its_files_hold(bench: Bench):
    old = bench.segment(10, {1: "a", 2: "b", 3: "c"})
    changes = inline(11, (Op.PUT, 1, "x"), (Op.TOMBSTONE, 3, None))
    bench.files.delete([bench.warehouse.name(old.id)])
    image = bench.image([changes], generation(10, GenerationMember(old)))
    assert not image.is_empty(Seq(11))
    # One more, and its files have to be read.
    image.apply(inline(101, (Op.TOMBSTONE, 2, None)))
    with pytest.raises(errors.SegmentDamaged):
        image.is_empty(Seq(101))


@pytest.mark.parametrize("as_segment", [False, True])
def test_a_table_of_which_all_rows_were_deleted_of_late_is_empty(bench: Bench, as_segment: bool):
    old = bench.segment(10, {1: "a", 2: "b"})
    gone = (
        in_files(12, bench.segment(12, [1, 2]))
        if as_segment
        else inline(12, (Op.TOMBSTONE, 1, None), (Op.TOMBSTONE, 2, None))
    )
    image = bench.image([gone], generation(10, GenerationMember(old)))
    assert [image.is_empty(Seq(seq)) for seq in (11, 12)] == [False, True]


@pytest.mark.parametrize("keys", [3, 40])
def test_keys_wider_than_those_of_old_files(bench: Bench, keys: int):
    """A key column was widened: entries that an old file cannot contain must not match ones that it contains."""
    narrow, wide = SqlType(Kind.INTEGER), BIGINT
    layouts = {1: ((ID, narrow), (VALUE, narrow)), 2: ((ID, narrow), (VALUE, wide))}
    columns = layouts[1]
    shape = SegmentShape(columns, (ID, VALUE), INDEX.id, LayoutId(1), SegmentKind.DATA)
    rows = [(number, 0) for number in range(keys)]
    arrays = [pa.array(v, pa.int32()) for v in zip(*rows, strict=True)]
    (written,) = SegmentWriter(bench.files, shape, lambda _: [SegmentId(99)]).write(
        pa.Table.from_arrays(arrays, schema=schema_of(columns))
    )
    changes = [*((number, 0) for number in range(keys)), *((number, 1 << 40) for number in range(keys))]
    payload = BatchCodec(layouts[2]).encode([int(Op.PUT)] * len(changes), changes)
    delta = IndexDelta(Seq(11), (seal_batch(INDEX.id, LayoutId(2), len(changes), payload),), ())
    contents = IndexContents(INDEX.id, Seq(11), generation(10, GenerationMember(_at(written, 10))), (delta,))
    image_shape = ImageShape(INDEX.id, 2, 0, lambda layout_id: layouts[layout_id], lambda: layouts[2], lambda: "t")
    image = IndexImage(image_shape, KeyCodec([narrow, wide]), bench.warehouse, contents)
    (file,) = image.parts(Seq(11)).files
    assert sorted(file.superseded.tolist()) == list(range(keys))
    assert image.get((1, 1 << 40), Seq(10)) is None

"""The consistency checker: silent on sound databases, and outspoken about each kind of damage."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.transaction.checked_snapshot import CheckedSnapshot
from seachange.model.ids import ColumnId, CommitId, IndexId, SegmentId, Seq
from seachange.model.log import CommitRequest, Committed, GenerationChange
from seachange.model.schema.descriptor import Index, Table
from seachange.model.segments import GenerationMember, Op, Segment
from seachange.storage.arrow import schema_of
from seachange.storage.batches import BatchCodec, seal_batch
from seachange.storage.segment_writer import SegmentShape, SegmentWriter
from seachange.verify.anomalies import Anomaly, AnomalyKind, AnomalyRule
from seachange.verify.consistency import check, inspect
from tests.engine.changing import attach, new_index, with_index
from tests.engine.database import add_column, bulk, create, insert, rows

INDEXES = [("t_v_key", (2,), True), ("t_n_idx", (3,), False)]


@pytest.fixture
def table(node: Node) -> Table:
    """A table with rows in a generation, in delta files and inline, some of them superseded."""
    table = create(node, indexes=INDEXES)
    bulk(node, *[(i, f"v{i}", i % 3) for i in range(40)])
    change(node, table, [(i, f"v{i}", i % 3) for i in range(5)], [(i, f"new{i}", None) for i in range(5)])
    node.compact(table)
    bulk(node, *[(i, f"v{i}", i % 3) for i in range(100, 120)])
    change(node, table, [(10, "v10", 1)], [(10, "ten", 1)])
    insert(node, (200, None, 7), (201, None, 7))
    return table


def change(node: Node, table: Table, old: Sequence[Any], new: Sequence[Any]) -> None:
    txn = node.begin()
    txn.writes.update(table, old, new)
    txn.commit()


def force(node: Node, **parts: Any) -> None:
    """A commit that no transaction would make."""
    head = node.parts.catalog.head()
    request = CommitRequest(CommitId(node.parts.entropy.token(16)), head, head, **parts)
    (outcome,) = node.parts.catalog.commit(node.epoch.epoch, [request])
    assert isinstance(outcome, Committed), outcome


def force_rows(node: Node, table: Table, index: Index, *changes: tuple[Op, tuple[Any, ...]]) -> None:
    columns = table.stored_columns(index, table.layout)
    ops, stored = [int(op) for op, _ in changes], [row for _, row in changes]
    batch = seal_batch(index.id, table.layout.id, len(ops), BatchCodec(columns).encode(ops, stored))
    force(node, touched=(index.id,), batches=(batch,))


def write_segment(node: Node, table: Table, stored: Sequence[tuple[Any, ...]]) -> Segment:
    """A file of the primary index whose rows are in the order given, whatever that is."""
    columns = table.stored_columns(table.primary, table.layout)
    shape = SegmentShape(columns, table.primary.key, table.primary.id, table.layout.id, fresh=True)
    schema = schema_of(columns)
    arrays = [pa.array(v, f.type) for v, f in zip(zip(*stored, strict=True), schema, strict=True)]
    catalog, epoch = node.parts.catalog, node.epoch.epoch
    writer = SegmentWriter(
        node.parts.files, shape, lambda n: [SegmentId(i) for i in catalog.reserve_segments(epoch, n)]
    )
    (written,) = writer.write(pa.Table.from_arrays(arrays, schema=schema))
    return written


def kinds(anomalies: Sequence[Anomaly]) -> set[AnomalyKind]:
    return {anomaly.kind for anomaly in anomalies}


def segment_files(node: Node) -> list[Path]:
    return [Path(node.parts.files.address, name) for name in node.parts.files.names()]


def test_a_sound_database_has_no_anomalies(node: Node, other: Node, table: Table):
    for each in (node, other):
        report = inspect(each)
        assert report.anomalies == []
        assert [c.index for c in report.coverage] == ["t_pkey", "t_v_key", "t_n_idx"]
        assert all(c.rows_checked == c.rows_total for c in report.coverage)


def test_an_empty_database_has_no_anomalies(node: Node):
    assert check(node) == []
    create(node, indexes=INDEXES)
    assert check(node) == []


def test_chosen_tables(node: Node, table: Table):
    create(node, name="u")
    assert [c.table for c in inspect(node, ["public.u"]).coverage] == ["public.u"]
    with pytest.raises(errors.UndefinedTable):
        check(node, ["nothing"])


def test_a_changed_shape_is_no_anomaly(node: Node, table: Table):
    txn = node.begin()
    txn.definitions.publish(table, add_column(table, "extra", frozen="7"))
    txn.commit()
    assert check(node) == []
    insert(node, (300, "x", 1, 2))
    node.compact(table)
    assert check(node) == []


def test_the_check_holds_no_snapshot(node: Node, table: Table):
    check(node)
    assert node.statistics()["open_transactions"] == 0


# Rows and entries.


def test_a_missing_entry_is_found_by_both_methods(node: Node, table: Table):
    force_rows(node, table, table.secondary[0], (Op.TOMBSTONE, ("v20", 20)))
    found = check(node)
    assert kinds(found) == {AnomalyKind.MISSING_ENTRY, AnomalyKind.LOOKUP_DIFFERS}
    assert {a.detail for a in found if a.kind is AnomalyKind.MISSING_ENTRY} == {
        "compared as sets",
        "looked up key by key",
    }
    assert {a.item for a in found} == {AnomalyRule.COMPLETE_INDEX}


def test_an_orphan_entry_is_found_by_both_methods(node: Node, table: Table):
    force_rows(node, table, table.secondary[1], (Op.INSERT, (2, 999)))
    found = check(node)
    assert kinds(found) == {AnomalyKind.ORPHAN_ENTRY}
    assert [a.detail for a in found] == ["compared as sets", "looked up key by key"]
    assert str(found[0]) == (
        'Key (n, id) = (2, 999) of index "t_n_idx" of table "public.t" has an entry that no row of the table calls '
        "for (compared as sets)."
    )


def test_a_row_without_its_entries(node: Node, table: Table):
    force_rows(node, table, table.primary, (Op.INSERT, (500, "lost", 5)))
    found = check(node)
    assert kinds(found) == {AnomalyKind.MISSING_ENTRY, AnomalyKind.LOOKUP_DIFFERS}
    assert {a.index for a in found} == {"t_v_key", "t_n_idx"}


def test_an_index_is_compared_once_it_has_a_generation(node: Node, table: Table):
    index = new_index(node, "t_later", [ColumnId(2)], unique=False)
    table = with_index(node, table, index)
    insert(node, (501, "late", 5))
    force_rows(node, table, index, (Op.INSERT, ("v20", 999)))
    assert check(node) == []
    attach(node, table, index, Seq(node.epoch.applied))
    assert check(node) == []
    force_rows(node, table, index, (Op.INSERT, ("v20", 999)))
    assert kinds(check(node)) == {AnomalyKind.ORPHAN_ENTRY}


def test_a_required_value_that_is_missing(node: Node):
    table = create(node)
    insert(node, (1, None, 1))
    txn = node.begin()
    strict = (table.columns[0], replace(table.columns[1], nullable=False), table.columns[2])
    txn.definitions.publish(table, replace(table, version=2, columns=strict))
    txn.commit()
    found = check(node)
    assert [(a.kind, a.item) for a in found] == [(AnomalyKind.NULL_VALUE, AnomalyRule.REQUIRED_VALUE)] * 2
    assert [a.key for a in found] == [(("id", "1"),), (("id", 1),)]


def test_a_unique_key_that_two_rows_have(node: Node, table: Table):
    force_rows(node, table, table.primary, (Op.INSERT, (500, "v20", 9)))
    for index, entry in zip(table.secondary, [("v20", 500), (9, 500)], strict=True):
        force_rows(node, table, index, (Op.INSERT, entry))
    found = check(node)
    assert kinds(found) == {AnomalyKind.DUPLICATE_KEY, AnomalyKind.LOOKUP_DIFFERS}
    assert next(a for a in found if a.kind is AnomalyKind.DUPLICATE_KEY).key == (("v", "v20"),)


def test_a_promise_that_was_not_kept(node: Node, table: Table):
    """A row that was written as new over one that is there: the read plan shows both."""
    force_rows(node, table, table.primary, (Op.INSERT, (20, "v20", 2)))
    found = check(node)
    assert {AnomalyKind.BROKEN_PROMISE, AnomalyKind.SCAN_INVENTS, AnomalyKind.DUPLICATE_KEY} <= kinds(found)


def test_two_versions_in_one_commit(node: Node, table: Table):
    force_rows(node, table, table.primary, (Op.TOMBSTONE, (20, None, None)), (Op.PUT, (20, "v20", 2)))
    assert AnomalyKind.TWO_VERSIONS in kinds(check(node))


class Tampered:
    """A node whose read plan does not know what is superseded."""

    def __init__(self, node: Node, index_id: IndexId) -> None:
        self._node = node
        self._index_id = index_id

    def begin_check(self) -> CheckedSnapshot:
        checked = self._node.begin_check()
        (table,) = checked.every_table()
        image = checked.epoch.image(table, table.index_by_id[self._index_id], checked.snapshot)
        for file in image._files:
            file.since._buffer[:] = 1 << 60
        return checked


def test_a_read_plan_that_forgets_what_is_superseded(node: Node, table: Table):
    assert check(node) == []
    change(node, table, [(30, "v30", 0)], [(30, "thirty", 0)])
    rows(node)
    found = check(Tampered(node, table.primary.id))
    assert {AnomalyKind.SCAN_INVENTS, AnomalyKind.DUPLICATE_KEY} <= kinds(found)
    assert {a.key for a in found if a.kind is AnomalyKind.SCAN_INVENTS} >= {(("id", "30"),)}


# Files.


def test_a_missing_file(node: Node, table: Table):
    path = segment_files(node)[-1]
    path.unlink()
    found = check(node)
    assert kinds(found) == {AnomalyKind.FILE_MISSING}
    assert path.name in str(found[0])


@pytest.mark.parametrize("damage", ["byte", "truncated", "longer", "swapped"])
def test_a_damaged_file(node: Node, table: Table, damage: str):
    assert check(node) == []
    other, *_, path = segment_files(node)
    content = bytearray(path.read_bytes())
    match damage:
        case "byte":
            content[len(content) // 2] ^= 1
        case "truncated":
            del content[-1]
        case "longer":
            content.append(0)
        case _:
            content = bytearray(other.read_bytes())
    path.write_bytes(content)
    found = check(node)
    assert kinds(found) == {AnomalyKind.FILE_DAMAGED}
    assert path.name in str(found[0])


def test_a_file_that_cannot_be_reached_is_no_damage(node: Node, table: Table):
    path = segment_files(node)[-1]
    path.unlink()
    path.symlink_to(path)
    with pytest.raises(errors.InputOutputError, match=path.name):
        check(node)


def test_a_file_out_of_order(node: Node):
    table = create(node)
    segment = write_segment(node, table, [(1, "a", 1), (3, "c", 3), (2, "b", 2)])
    force(node, touched=(table.primary.id,), bulk=(table.primary.id,), segments=(segment,))
    found = check(node)
    assert AnomalyKind.UNSORTED in kinds(found)
    assert next(a for a in found if a.kind is AnomalyKind.UNSORTED).key == (("id", 2),)


@pytest.mark.parametrize("lie", [{"rows": 9}, {"key_max": b"\x01z"}, {"key_min": b"\x01"}])
def test_a_file_that_is_not_what_the_catalog_says(node: Node, lie: dict[str, Any]):
    table = create(node)
    segment = replace(write_segment(node, table, [(1, "a", 1), (2, "b", 2)]), **lie)
    force(node, touched=(table.primary.id,), bulk=(table.primary.id,), segments=(segment,))
    assert AnomalyKind.FILE_DIFFERS in kinds(check(node))


def test_a_file_of_another_index(node: Node, table: Table):
    segment = write_segment(node, table, [(900, "a", 1)])
    index = table.secondary[1]
    segment = replace(segment, index_id=index.id)
    force(node, touched=(index.id,), bulk=(index.id,), segments=(segment,))
    assert {AnomalyKind.FILE_DIFFERS, AnomalyKind.FILE_COLUMNS} <= kinds(check(node))


@pytest.mark.parametrize("positions", [[2], [1, 0], [0, 0]])
def test_hidden_positions_that_a_file_does_not_have(node: Node, positions: list[int]):
    table = create(node)
    segment = write_segment(node, table, [(1, "a", 1), (2, "b", 2)])
    deleted = b"".join(position.to_bytes(4, "little") for position in positions)
    newest = node.parts.catalog.newest_generation(table.primary.id)
    assert newest is not None
    base = Seq(node.parts.catalog.head())
    swap = GenerationChange(table.primary.id, newest.id, base, (GenerationMember(segment, deleted),))
    force(node, generations=(swap,))
    assert AnomalyKind.BAD_DELETED in kinds(check(node))


# Large tables.


def test_a_sample_says_what_share_it_is(node: Node):
    table = create(node, indexes=INDEXES)
    bulk(node, *[(i, f"v{i:06}", i % 7) for i in range(35_000)])
    change(
        node,
        table,
        [(i, f"v{i:06}", i % 7) for i in range(0, 35_000, 1_000)],
        [(i, None, 0) for i in range(0, 35_000, 1_000)],
    )
    report = inspect(node, rows_max=5_000)
    assert report.anomalies == []
    for coverage in report.coverage:
        assert 0 < coverage.rows_checked < coverage.rows_total / 5
        assert " %) were compared key by key." in str(coverage)


def test_a_sample_finds_what_is_in_it_and_sets_find_the_rest(node: Node):
    table = create(node, indexes=INDEXES)
    bulk(node, *[(i, f"v{i:06}", i % 7) for i in range(35_000)])
    force_rows(node, table, table.secondary[0], (Op.TOMBSTONE, ("v000000", 0)), (Op.TOMBSTONE, ("v034999", 34_999)))
    found = inspect(node, rows_max=2_000).anomalies
    by_sets = {a.key for a in found if a.detail == "compared as sets"}
    by_keys = {a.key for a in found if a.detail == "looked up key by key"}
    assert by_sets == {(("v", "v000000"), ("id", "0")), (("v", "v034999"), ("id", "34999"))}
    assert by_keys == {(("v", "v000000"), ("id", 0))}

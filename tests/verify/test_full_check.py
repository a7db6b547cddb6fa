"""A full check compares all rows key by key, range after range; and the folder is compared with the catalog."""

from pathlib import Path

from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.segments import Op
from seachange.verify.anomalies import AnomalyKind
from seachange.verify.consistency import inspect
from seachange.verify.keywise import split_ranges
from seachange.verify.reference import KeyRanges, ReferenceReader
from seachange.verify.subject import CheckedIndex
from tests.engine.database import bulk, create
from tests.support.forks import Fork
from tests.verify.test_consistency import INDEXES, change, force_rows

ROWS = 20_000


def test_a_full_check_reads_all_rows_a_range_at_a_time(node: Node):
    table = create(node, indexes=INDEXES)
    bulk(node, *[(i, f"v{i:06}", i % 7) for i in range(ROWS)])
    change(
        node, table, [(i, f"v{i:06}", i % 7) for i in range(0, ROWS, 500)], [(i, None, 0) for i in range(0, ROWS, 500)]
    )
    report = inspect(node, rows_max=9_000, full=True)
    assert report.anomalies == []
    assert [c.rows_checked for c in report.coverage] == [c.rows_total for c in report.coverage]
    # The secondary indexes have row groups of 8,192 rows.
    epoch, catalog = node.epoch.epoch, node.parts.catalog
    for index in table.secondary:
        contents = catalog.index_contents(epoch, index.id, catalog.head())
        parts = split_ranges(contents, node.parts.files, 9_000)
        subject = CheckedIndex(table, index)
        held = [len(ReferenceReader(subject, node.parts.files, part).read(contents).live) for part in parts]
        assert len(held) > 1
        assert max(held) <= 9_000 + len(range(0, ROWS, 500))
        assert sum(held) == ROWS


def test_a_full_check_finds_by_keys_what_a_sample_leaves_out(node: Node):
    table = create(node, indexes=INDEXES)
    bulk(node, *[(i, f"v{i:06}", i % 7) for i in range(ROWS)])
    last = (f"v{ROWS - 1:06}", ROWS - 1)
    force_rows(node, table, table.secondary[0], (Op.TOMBSTONE, last))
    by_keys = "looked up key by key"
    assert by_keys not in {a.detail for a in inspect(node, rows_max=200).anomalies}
    found = inspect(node, rows_max=9_000, full=True).anomalies
    assert [a.key for a in found if a.detail == by_keys] == [(("v", last[0]), ("id", last[1]))]


def test_ranges_have_every_key_once(node: Node):
    table = create(node, indexes=INDEXES)
    bulk(node, *[(i, f"v{i:06}", i % 7) for i in range(ROWS)])
    bulk(node, *[(i, f"w{i:06}", i % 7) for i in range(ROWS, ROWS + 9_000)])
    contents = node.parts.catalog.index_contents(node.epoch.epoch, table.secondary[1].id, node.parts.catalog.head())
    ranges = [r for r in split_ranges(contents, node.parts.files, 9_000) if r is not None]
    assert len(ranges) > 2
    assert ranges[0].lows == [b""]
    assert ranges[-1].highs == [None]
    assert [r.highs[0] for r in ranges[:-1]] == [r.lows[0] for r in ranges[1:]]
    assert b"\xff" * 100 in KeyRanges([b"a"], [None])


def test_files_that_nothing_refers_to_are_reported(node: Node, other: Node):
    table = create(node)
    bulk(node, *[(i, f"v{i}", 1) for i in range(100)])
    catalog, folder = node.parts.catalog, Path(node.parts.files.address)
    # Of a writer that lives; of one that has ended, which is garbage; and of none.
    (live,) = catalog.reserve_segments(node.epoch.epoch, 1)
    gone = catalog.register_node("gone", 1_000)
    (dead,) = catalog.reserve_segments(gone, 1)
    catalog.end_node(gone)
    (folder / f"{live:016x}.parquet").write_bytes(b"being written")
    (folder / f".tmp-{live:016x}.parquet").write_bytes(b"being written")
    (folder / f"{dead:016x}.parquet").write_bytes(b"left behind")
    for name in (f"{10**6:016x}.parquet", f".tmp-{10**6:016x}.arrow", "notes.txt"):
        (folder / name).write_bytes(b"stray")
    report = inspect(node)
    assert {a.kind for a in report.anomalies} == {AnomalyKind.FILE_UNREFERENCED}
    assert {a.detail for a in report.anomalies} == {f"{10**6:016x}.parquet", f".tmp-{10**6:016x}.arrow", "notes.txt"}
    assert str(report.anomalies[-1]) == "The file notes.txt is one that no commit, live writer or job refers to."
    assert [f"{dead:016x}.parquet" in remark for remark in report.remarks] == [True]
    # One table's check is not about the folder.
    assert inspect(node, [table.name]).anomalies == []


def run_check(*arguments: object) -> tuple[int, str, str]:
    with Fork("seachange.cli.main", "check", *map(str, arguments)) as process:
        ended = process.communicate("")
    return ended.returncode, ended.stdout, ended.stderr


def test_the_command_says_what_was_compared(tmp_path: Path):
    node = open_node(tmp_path)
    session = Session(node)
    session.execute("create table t (id int primary key)")
    session.execute("insert into t select x from generate_series(1, 6000) s(x)")
    session.close()
    node.close()
    code, printed, complaint = run_check("--data", tmp_path)
    assert (code, complaint) == (0, "")
    sample, verdict = printed.splitlines()
    assert "of 6000 stored rows" in sample
    assert verdict == "consistent"
    code, printed, complaint = run_check("--data", tmp_path, "--full")
    assert (code, complaint) == (0, "")
    whole = 'Index "t_pkey" of table "public.t": 6000 of 6000 stored rows (100.0 %) were compared key by key.'
    assert printed.splitlines() == [whole, "consistent"]
    (tmp_path / "segments" / "notes.txt").write_text("mine")
    code, printed, _ = run_check("--data", tmp_path)
    assert code == 1
    assert printed.splitlines()[0] == "The file notes.txt is one that no commit, live writer or job refers to."
    assert printed.splitlines()[-1] == "1 anomalies"

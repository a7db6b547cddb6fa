"""What must hold of a database after a fault, as a list of what does not."""

from collections import Counter
from collections.abc import Sequence

from seachange import errors
from seachange.catalog.dead_nodes import end_dead_nodes
from seachange.engine.node.node import Node
from seachange.engine.transaction.transaction import Transaction
from seachange.model.ids import SegmentId
from seachange.model.segments import Segment
from seachange.runtime.filesystem import TEMPORARY_PREFIX
from seachange.verify import consistency
from tests.crash.script import Contents, contents_after
from tests.support.tables import KEYED, KEYLESS, read_index, read_key_columns, read_table
from tests.support.workers import wait_until

KEYWISE_ROWS_MAX = 300


def referenced_segments(node: Node) -> dict[SegmentId, Segment]:
    """Every segment that a reader of the head is sent to."""
    catalog, epoch = node.parts.catalog, node.epoch
    found: dict[SegmentId, Segment] = {}
    head = epoch.catch_up()
    for table in epoch.schema(head).by_id.values():
        for index in table.indexes:
            contents = catalog.index_contents(epoch.epoch, index.id, head)
            members = contents.generation.members if contents.generation else ()
            found |= {member.segment.id: member.segment for member in members}
            found |= {segment.id: segment for delta in contents.deltas for segment in delta.segments}
    return found


def judge_files(node: Node) -> list[str]:
    """Every referenced file is there, with the recorded size and checksum."""
    problems = []
    for segment in referenced_segments(node).values():
        try:
            node.parts.warehouse.path(segment)
        except errors.Error as problem:
            problems.append(f"a segment that is referred to: {problem}")
    return problems


def judge_indexes(node: Node, txn: Transaction) -> list[str]:
    """Every index holds exactly the entries that its table's rows ask for, and unique keys are unique."""
    problems = []
    for table in txn.schema.tables():
        for index in table.indexes:
            entries = Counter(read_index(node, txn, table, index))
            wanted = Counter(read_key_columns(node, txn, table, index))
            if entries != wanted:
                missing, orphans = list((wanted - entries).items())[:3], list((entries - wanted).items())[:3]
                problems.append(f"index {index.name}: missing {missing}, orphans {orphans}")
            keys = Counter(entry[: len(index.key)] for entry in entries.elements())
            twice = [key for key, count in keys.items() if index.unique and count > 1]
            if twice:
                problems.append(f"index {index.name}: {twice[:3]} more than once")
    return problems


def judge_contents(node: Node, txn: Transaction, possible: Sequence[Contents]) -> list[str]:
    """Both tables hold one and the same of the contents that are possible, by scan and by look-up."""
    names = {table.name for table in txn.schema.tables()}
    if not names:
        return [] if any(not contents.exists for contents in possible) else ["the tables are gone"]
    if names != {*KEYED, *KEYLESS}:
        return [f"half of the tables are there: {sorted(names)}"]
    held = {name: read_table(node, txn, name) for name in KEYED}
    if held["left"] != held["right"]:
        only = set(held["left"]) ^ set(held["right"])
        return [f"half a commit is there: {sorted(only, key=repr)[:4]}"]
    wanted = [contents.table() for contents in possible if contents.exists]
    if held["left"] not in wanted:
        lost = [row for row in (wanted[0] if wanted else []) if row not in held["left"]]
        excess = [row for row in held["left"] if not wanted or row not in wanted[-1]]
        return [f"the contents are none of the {len(possible)} possible: without {lost[:3]}, with {excess[:3]}"]
    table = txn.schema.table(None, "left")
    looked_up = [txn.reads.get(table, (row[0],)) for row in held["left"]]
    return [] if looked_up == held["left"] else ["look-ups by key and the scan differ"]


def inspect(node: Node) -> list[str]:
    """What the consistency checker finds, by methods of its own. It takes longer than all the rest. All rows are
    compared as sets, and at most so many of an index by lookups."""
    report = consistency.inspect(node, rows_max=KEYWISE_ROWS_MAX)
    return [f"the checker finds: {anomaly}" for anomaly in report.anomalies]


def judge(node: Node, possible: Sequence[Contents]) -> list[str]:
    """All of the above; an error while reading is a violation as well."""
    try:
        txn = node.begin()
        try:
            return [*judge_files(node), *judge_contents(node, txn, possible), *judge_indexes(node, txn)]
        finally:
            txn.rollback()
    except errors.Error as problem:
        return [f"reading failed: {type(problem).__name__}: {problem}"]


def judge_script(node: Node, seed: int, acknowledged: int) -> list[str]:
    """After so many acknowledged steps of the script: these, and perhaps the one under way."""
    return judge(node, [contents_after(seed, acknowledged), contents_after(seed, acknowledged + 1)])


def judge_garbage(node: Node) -> list[str]:
    """When the epochs of killed nodes have ended, garbage collection leaves the referenced files and nothing else."""
    catalog = node.parts.catalog

    def others_are_gone() -> bool:
        end_dead_nodes(catalog)
        return all(record.epoch == node.epoch.epoch or not record.live for record in catalog.nodes())

    wait_until(others_are_gone, "the epochs of killed nodes to end")
    node.collect_garbage(0)
    wanted = {node.parts.warehouse.name(segment_id) for segment_id in referenced_segments(node)}
    there = set(node.parts.files.names())
    temporary = sorted(name for name in there if name.startswith(TEMPORARY_PREFIX))
    return [
        *([f"temporary files are left: {temporary}"] if temporary else []),
        *([f"garbage is left: {sorted(there - wanted)}"] if there - wanted - set(temporary) else []),
        *([f"files are missing: {sorted(wanted - there)}"] if wanted - there else []),
    ]


def judge_markers(node: Node, acknowledged: set[int], possible: set[int]) -> list[str]:
    """Both keyless tables hold every acknowledged marker once, perhaps some of the possible ones, and no other."""
    txn = node.begin()
    try:
        held = {name: Counter(row[0] for row in read_table(node, txn, name)) for name in KEYLESS}
    finally:
        txn.rollback()
    problems = []
    if held["first"] != held["second"]:
        problems.append("half a commit is there")
    for name, counts in held.items():
        lost = acknowledged - counts.keys()
        twice = [marker for marker, count in counts.items() if count > 1]
        foreign = counts.keys() - acknowledged - possible
        for what, markers in (("lost", lost), ("twice", twice), ("of no commit", foreign)):
            if markers:
                problems.append(f"{name}: {len(markers)} markers {what}: {sorted(markers)[:5]}")
    return problems

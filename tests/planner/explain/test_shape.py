"""What EXPLAIN (DDL, COST) says a change costs."""

from seachange.model.statements.session_statements import DdlExplanation
from tests.planner.explain.plans import CHANGE, CHILD, FOO, explain, world


def shape(made, sql):
    return explain(made, sql, DdlExplanation.COST)


def test_an_index_is_read_written_and_validated():
    lines = shape(world(FOO, foo=1000), CHANGE)
    assert lines[:5] == [
        "Strategy: build index (rows are read, entries are written)",
        "Bytes moved: 29.3 kB",
        "Versions waited for: 2 (version 2 of table foo, then version 3 of table foo)",
        "Versions published: 3 (3 of table foo)",
        "Time: about 0.0445 s, without waits",
    ]
    assert "  column c4+: metadata only; ABSENT -> WRITE_ONLY -> PUBLIC" in lines
    assert "  scan foo once: about 1,000 rows, 58.6 kB, 2 files; write about 29.3 kB of u+" in lines
    assert "Point of no return: stage 5 of 5, the publication (Stage 1 of 1 in post-commit non-revertible)" in lines
    assert (
        "Cancel before stage 5 of 5: 9 elements reverted, 1 version published, 0 waited for, nothing moved; "
        "what was built is deleted"
    ) in lines


def test_what_is_not_known_is_said_to_be():
    lines = shape(world(FOO), "create index on foo (c1)")
    assert "Bytes moved: unknown" in lines
    assert "Time: unknown" in lines
    assert "  scan foo once: an unknown amount; write an unknown amount of foo_c1_idx+" in lines


def test_metadata_only():
    lines = shape(world(FOO, foo=1000), "alter table foo drop column c2")
    assert lines[:3] == [
        "Strategy: metadata only (no data is read or written)",
        "Bytes moved: 0 bytes",
        "Versions waited for: 0",
    ]
    assert "Point of no return: COMMIT" in lines


def test_a_foreign_key_reads_both_tables():
    made = world(FOO, CHILD, foo=1000, child=10)
    lines = shape(made, "alter table child add foreign key (f) references foo")
    (work,) = [line for line in lines if line.startswith("  validate that")]
    assert work == (
        "  validate that every row of child has its parent in foo: "
        "read about 1,010 rows, 59.2 kB, 4 files; write nothing"
    )


def test_data_that_goes_later_is_no_wait_of_the_change():
    lines = shape(world(FOO, foo=1000), "drop table foo")
    assert "Versions waited for: 0" in lines
    assert "  later, once no snapshot can read it, delete about 58.6 kB of foo_pkey of foo-" in lines

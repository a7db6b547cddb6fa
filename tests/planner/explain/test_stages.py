"""What EXPLAIN (DDL) says of stages."""

from seachange.model.statements.session_statements import DdlExplanation
from tests.planner.explain.plans import CHANGE, CHILD, FOO, explain, world


def position(lines, text):
    (found,) = [number for number, line in enumerate(lines) if line.strip() == text]
    return found


def test_the_way_of_a_unique_index_and_of_columns_beside_it():
    lines = explain(world(FOO, foo=1000), CHANGE)
    steps = [
        "column c4+: ABSENT -> WRITE_ONLY",
        "unique index u+: ABSENT -> WRITE_ONLY",
        "waits for every writer of table foo to know version 2 (drain, then raise min_version)",
        "unique index u+: WRITE_ONLY -> WRITE_ONLY (complete)",
        "build u+ from one scan of foo_pkey, as of the raise of min_version",
        "unique index u+: WRITE_ONLY (complete) -> ENFORCED",
        "waits for every writer of table foo to know version 3 (drain, then raise min_version)",
        "unique index u+: ENFORCED -> ENFORCED (proven)",
        "show that no two rows of foo agree in c4+ (by unique index u+)",
        "Stage 1 of 1 in post-commit non-revertible: mutation",
        "point of no return: the publication, visible to all sessions; a cancel before it leaves nothing of it",
        "unique index u+: ENFORCED (proven) -> PUBLIC",
        "column c2-: PUBLIC -> ABSENT",
    ]
    positions = [position(lines, step) for step in steps]
    assert positions == sorted(positions)
    assert "  comes: column c4+ (metadata only), unique index u+ (build index)" in lines
    assert "  goes: column c2- (metadata only), column c3- (metadata only)" in lines
    assert lines[0] == "5 stages: 3 versions published, 2 waited for; build index, moves 29.3 kB"


def test_skipped_steps_are_reported_with_the_reason():
    lines = explain(world(FOO, foo=1000), CHANGE)
    number = position(lines, "NOT NULL of column c4+: ABSENT -> PUBLIC")
    assert lines[number + 1].strip() == (
        "skips ENFORCED and ENFORCED (proven): rows without the column read as its default"
    )


def test_what_is_done_by_commit_says_so():
    lines = explain(world(FOO), "alter table foo rename column c3 to d")
    assert "  Stage 1 of 1 in pre-commit: mutation, a part of COMMIT" in lines
    assert "    point of no return: the COMMIT itself; ROLLBACK leaves nothing" in lines
    assert "    waits for nothing" in lines
    assert "      name of column d: ABSENT -> PUBLIC" in lines
    assert "      name c3 of column d: PUBLIC -> ABSENT" in lines


def test_two_tables_are_waited_for_together():
    made = world(FOO, CHILD)
    lines = explain(made, "alter table child add constraint x foreign key (f) references foo")
    assert (
        "    waits for every writer of table foo to know version 3 and of table child to know version 2 "
        "(drain, then raise min_version)"
    ) in lines
    assert "      foreign key x+ of child: ABSENT -> WRITE_ONLY" in lines


def test_an_element_that_is_replaced_is_told_apart_from_its_successor():
    lines = explain(world(FOO, CHILD), "alter table foo alter primary key using columns (c1)")
    assert "      foreign key child_f_fkey+ of child: ABSENT -> PUBLIC" in lines
    assert "      foreign key child_f_fkey- of child: PUBLIC -> ABSENT" in lines
    assert "      primary index foo_pkey+ of foo: ABSENT -> WRITE_ONLY" in lines
    assert "      unique index foo_c1_proof~ of foo: ABSENT -> WRITE_ONLY" in lines


def test_a_table_that_ends():
    lines = explain(world(FOO), "drop table foo")
    assert any(line.startswith("      publish the end of table foo- (") for line in lines)
    assert any("seachange.retention" in line for line in lines)


def test_names_that_need_quotes():
    made = world('create table "My T" (k int primary key)')
    lines = explain(made, 'alter table "My T" add column "a ""b" int')
    assert '      column "a ""b"+: ABSENT -> PUBLIC' in lines


def test_nothing_to_do():
    made = world(FOO)
    assert explain(made, "alter table foo add column x int; alter table foo drop column x") == ["Nothing to do."]


def test_verbose_gives_rules_and_arguments():
    lines = [x.strip() for x in explain(world(FOO, foo=1000), CHANGE, DdlExplanation.VERBOSE)]
    assert "not before column c4+ becomes WRITE_ONLY: a column is written before an index stores it" in lines
    assert "fenced: every writer knows WRITE_ONLY before" in lines
    assert "BackfillIndexes(table_id=100 foo, source_id=101 foo_pkey, index_ids=(102 u+))" in lines
    (published,) = [x for x in lines if x.startswith("SetState(element=UniqueIndex") and x.endswith("state=PUBLIC)")]
    assert "key=(5 c4+)" in published


def test_what_the_publication_is_sure_of():
    lines = explain(world(FOO, foo=0), "create unique index on foo (c1)")
    assert "      check that table foo has no rows still" in lines
    assert "      accept no commit planned with an older version of table foo" in lines
    lines = explain(world(FOO, foo=1000), "truncate foo")
    assert "      accept no commit planned with an older version of table foo" in lines


def test_a_new_object_is_explained_as_a_whole():
    lines = explain(world(FOO), "create type mood as enum ('sad', 'ok'); create table bar (id int primary key, m mood)")
    assert lines[2] == "  comes: type mood+ (metadata only), table bar+ (metadata only)"
    assert "      value sad+ of type mood+: ABSENT -> PUBLIC" in lines

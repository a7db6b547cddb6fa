"""What is done to a table as a whole."""

from tests.bench_cases.case import TRY_AGAIN, Case

CASES = (
    Case(
        "rename table",
        "alter table t rename to t2",
        """- table t
           + table t2""",
        renames={"t": "t2"},
        at_once=True,
    ),
    Case("truncate", "truncate t", "", at_once=True, refuses=TRY_AGAIN, twin="delete from w"),
    Case(
        "truncate with indexes",
        "truncate t",
        "",
        setup=("create unique index i on t (a)", "create index j on t (b) where c > 1"),
        at_once=True,
        refuses=TRY_AGAIN,
        twin="delete from w",
    ),
    Case(
        "drop table",
        "drop table t",
        """- table t
           - column id integer not null
           - column a integer not null
           - column b text
           - column c integer
           - column n integer
           - column p integer
           - primary t_pkey (id)
           - check t_c_check: (c < 1000)
           - foreign key t_p_fkey (p) on delete cascade on update cascade""",
        at_once=True,
        refuses=TRY_AGAIN,
    ),
)

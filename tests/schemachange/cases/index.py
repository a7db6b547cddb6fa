"""Indexes that come and go."""

from tests.schemachange.case import TRY_AGAIN, Case

_DUPLICATE = ("insert into {t} (id, a, b, c, n) values (90001, 10, 'b1', 0, 90001)", "23505")
_REMOVE = ("delete from t where id = 90001", "delete from w where id = 90001")
_TWICE = ("insert into t (id, a, b, c, n) values (90001, 50010, 'same', 1, 90001), (90002, 50020, 'same', 1, 90002)",)
_REMOVE_TWICE = ("delete from t where id > 90000 and id < 90003", "delete from w where id > 90000 and id < 90003")
_NULLS = ("insert into t (id, a, b, c) values (90001, 50010, null, 1), (90002, 50020, null, 1)",)

CASES = (
    Case("create index", "create index i on t (c, b)", "+ index i (c, b)"),
    Case(
        "create unique index",
        "create unique index i on t (a)",
        "+ unique index i (a)",
        spoil=_DUPLICATE,
        repair=_REMOVE,
    ),
    Case("create index on a key of the row", "create index i on t (id, c)", "+ index i (id, c)"),
    Case("create partial index", "create index i on t (b) where c > 2", "+ index i (b) partial"),
    Case(
        "create unique partial index",
        "create unique index i on t (b) where c < 3",
        "+ unique index i (b) partial",
        spoil=_DUPLICATE,
        repair=_REMOVE,
    ),
    Case(
        "create index on an expression",
        "create index i on t (upper(b), (a + c))",
        """+ column upper(b) text virtual hidden
           + column a + c integer virtual hidden
           + index i (upper(b), a + c)""",
    ),
    Case(
        "create unique index on an expression",
        "create unique index i on t (upper(b))",
        """+ column upper(b) text virtual hidden
           + unique index i (upper(b))""",
        spoil=_DUPLICATE,
        repair=_REMOVE,
    ),
    Case(
        "create unique index on an expression that is no text",
        "create unique index i on t ((a + 1))",
        """+ column a + 1 integer virtual hidden
           + unique index i (a + 1)""",
        spoil=_DUPLICATE,
        repair=_REMOVE,
    ),
    Case("create index descending", "create index i on t (c desc nulls last, b)", "+ index i (c desc nulls last, b)"),
    Case("create index include", "create index i on t (b) include (c, n)", "+ index i (b) include (c, n)"),
    Case(
        "create unique index nulls not distinct",
        "create unique index i on t (b) nulls not distinct",
        "+ unique index i (b) nulls not distinct",
        setup=("insert into t (id, a, b, c) values (90003, 50030, null, 1)",),
        spoil=("insert into {t} (id, a, b, c) values (90001, 50010, null, 1)", "23505"),
        repair=_REMOVE,
    ),
    Case(
        "create unique index over duplicates",
        "create unique index i on t (b)",
        "+ unique index i (b)",
        setup=_TWICE,
        fails="23505",
        repair=_REMOVE_TWICE,
    ),
    Case(
        "create unique index over two nulls that are not distinct",
        "create unique index i on t (b) nulls not distinct",
        "+ unique index i (b) nulls not distinct",
        setup=_NULLS,
        fails="23505",
        repair=_REMOVE_TWICE,
    ),
    Case("drop index", "drop index i", "- index i (b)", setup=("create index i on t (b)",), at_once=True),
    Case(
        "drop unique index",
        "drop index i",
        "- unique index i (a)",
        setup=("create unique index i on t (a)",),
        at_once=True,
    ),
    Case(
        "rename index",
        "alter index i rename to j",
        """- index i (b)
           + index j (b)""",
        setup=("create index i on t (b)",),
        at_once=True,
    ),
    Case(
        "drop index of an expression",
        "drop index i",
        """- column upper(b) text virtual hidden
           - index i (upper(b))""",
        setup=("create index i on t (upper(b))",),
        at_once=True,
    ),
    Case(
        "alter primary key",
        "alter table t alter primary key using columns (a)",
        """- primary t_pkey (id)
           + primary t_pkey (a)
           + unique index t_id_key (id) constraint""",
        refuses=TRY_AGAIN,
        spoil=_DUPLICATE,
        repair=_REMOVE,
    ),
    Case(
        "alter primary key that an index proves",
        "alter table t alter primary key using columns (a)",
        """- primary t_pkey (id)
           + primary t_pkey (a)
           + unique index t_id_key (id) constraint""",
        setup=("create unique index u on t (a)", "create index i on t (c)"),
        refuses=TRY_AGAIN,
    ),
    Case(
        "alter primary key over duplicates",
        "alter table t alter primary key using columns (n)",
        """- column n integer
           - primary t_pkey (id)
           + column n integer not null
           + primary t_pkey (n)
           + unique index t_id_key (id) constraint""",
        setup=("insert into t (id, a, b, c, n) values (90001, 50010, 'x', 1, 90001), (90002, 50020, 'y', 1, 90001)",),
        fails="23505",
        repair=_REMOVE_TWICE,
    ),
)

"""Constraints that come, are proven, and go."""

from tests.schemachange.case import COLUMNS, KEYLESS, TRY_AGAIN, Case

_DUPLICATE = ("insert into {t} (id, a, b, c, n) values (90001, 10, 'b1', 0, 90001)", "23505")
_NEGATIVE = ("insert into {t} (id, a, b, c, n) values (90001, 50010, 'x', -1, 90001)", "23514")
_ORPHAN = ("insert into {t} (id, a, b, c, n) values (90001, 50010, 'x', 77, 90001)", "23503")
_REMOVE = ("delete from t where id = 90001", "delete from w where id = 90001")
_PARENTS = ("create table q (id int primary key)", "insert into q select i from generate_series(0, 4) g(i)")
_CHILDREN = (
    "insert into t (id, a, b, c, n) values (90005, 50050, 'x', 1, 90005)",
    "create table k (id int primary key, t int)",
    "insert into k values (1, 90005), (2, null)",
)

CASES = (
    Case(
        "add check",
        "alter table t add constraint k check (c >= 0)",
        "+ check k: (c >= 0)",
        spoil=_NEGATIVE,
        repair=_REMOVE,
    ),
    Case(
        "add check that a row breaks",
        "alter table t add constraint k check (c >= 0)",
        "+ check k: (c >= 0)",
        setup=(_NEGATIVE[0].format(t="t"),),
        fails="23514",
        repair=_REMOVE,
    ),
    Case(
        "add check not valid",
        "alter table t add constraint k check (c >= 0) not valid",
        "+ check k: (c >= 0) ENFORCED",
        at_once=True,
    ),
    Case(
        "validate check",
        "alter table t validate constraint k",
        """- check k: (c >= 0) ENFORCED
           + check k: (c >= 0)""",
        setup=("alter table t add constraint k check (c >= 0) not valid",),
    ),
    Case(
        "validate check that a row breaks",
        "alter table t validate constraint k",
        """- check k: (c >= 0) ENFORCED
           + check k: (c >= 0)""",
        setup=(_NEGATIVE[0].format(t="t"), "alter table t add constraint k check (c >= 0) not valid"),
        fails="23514",
        repair=_REMOVE,
    ),
    Case(
        "add unique",
        "alter table t add constraint u unique (a)",
        "+ unique index u (a) constraint",
        spoil=_DUPLICATE,
        repair=_REMOVE,
    ),
    Case(
        "add unique of two columns",
        "alter table t add constraint u unique (c, b)",
        "+ unique index u (c, b) constraint",
        setup=("insert into t (id, a, b, c, n) values (90002, 50020, 'b1', 0, 90002)",),
        spoil=_DUPLICATE,
        repair=_REMOVE,
    ),
    Case(
        "add unique constraints and a check in one scan",
        "alter table t add constraint u unique (a), add constraint v unique (n, b), add constraint k check (c >= 0)",
        """+ unique index u (a) constraint
           + unique index v (n, b) constraint
           + check k: (c >= 0)""",
        spoil=_DUPLICATE,
        repair=_REMOVE,
    ),
    Case(
        "add unique over duplicates",
        "alter table t add constraint u unique (a)",
        "+ unique index u (a) constraint",
        setup=(_DUPLICATE[0].format(t="t"),),
        fails="23505",
        repair=_REMOVE,
    ),
    Case(
        "add unique using index",
        "alter table t add constraint u unique using index i",
        """- unique index i (a)
           + unique index u (a) constraint""",
        setup=("create unique index i on t (a)",),
        at_once=True,
    ),
    Case(
        "add foreign key",
        "alter table t add constraint f foreign key (c) references q (id)",
        "+ foreign key f (c)",
        setup=_PARENTS,
        spoil=_ORPHAN,
        repair=_REMOVE,
    ),
    Case(
        "add foreign key with action",
        "alter table t add constraint f foreign key (c) references q (id) on delete set null",
        "+ foreign key f (c) on delete set null",
        setup=_PARENTS,
        spoil=_ORPHAN,
        repair=_REMOVE,
    ),
    Case(
        "add foreign key that is deferred",
        "alter table t add constraint f foreign key (c) references q (id) deferrable initially deferred",
        "+ foreign key f (c)",
        setup=_PARENTS,
        spoil=_ORPHAN,
        repair=_REMOVE,
    ),
    Case(
        "add foreign key of two columns, match full",
        "alter table t add constraint f foreign key (c, m) references q (id, m) match full",
        "+ foreign key f (c, m)",
        setup=(
            "create table q (id int, m int, primary key (id, m))",
            "insert into q select i, 1 from generate_series(0, 4) g(i)",
            "alter table t add column m int default 1",
        ),
        spoil=("insert into {t} (id, a, b, c, n) values (90001, 50010, 'x', null, 90001)", "23503"),
        repair=_REMOVE,
    ),
    Case(
        "add foreign key over an orphan",
        "alter table t add constraint f foreign key (c) references q (id)",
        "+ foreign key f (c)",
        setup=(*_PARENTS, _ORPHAN[0].format(t="t")),
        fails="23503",
        repair=_REMOVE,
    ),
    Case(
        "add foreign key not valid",
        "alter table t add constraint f foreign key (c) references q (id) not valid",
        "+ foreign key f (c) ENFORCED",
        setup=_PARENTS,
    ),
    Case(
        "validate foreign key",
        "alter table t validate constraint f",
        """- foreign key f (c) ENFORCED
           + foreign key f (c)""",
        setup=(*_PARENTS, "alter table t add constraint f foreign key (c) references q (id) not valid"),
    ),
    Case(
        "validate foreign key over an orphan",
        "alter table t validate constraint f",
        """- foreign key f (c) ENFORCED
           + foreign key f (c)""",
        setup=(
            *_PARENTS,
            _ORPHAN[0].format(t="t"),
            "alter table t add constraint f foreign key (c) references q (id) not valid",
        ),
        fails="23503",
        repair=_REMOVE,
    ),
    Case(
        "add foreign key to the table",
        "alter table k add constraint f foreign key (t) references t (id)",
        "",
        setup=_CHILDREN,
    ),
    Case(
        "add foreign key to itself",
        "alter table t add constraint f foreign key (n) references t (a) deferrable initially deferred",
        "+ foreign key f (n)",
        setup=("create unique index i on t (a)", "update t set n = null"),
        without=frozenset({"insert", "update", "upsert", "keep", "load", "copy", "update many"}),
    ),
    Case(
        "add primary key",
        "alter table t add primary key (id)",
        """- column rowid bigint not null hidden
           - primary t_pkey (rowid)
           + primary t_pkey (id)""",
        columns=KEYLESS,
        refuses=TRY_AGAIN,
        spoil=("insert into {t} (id, a, b, c, n) values (50039, 50010, 'x', 0, 90001)", "23505"),
        repair=("delete from t where a = 50010", "delete from w where a = 50010"),
    ),
    Case(
        "add primary key using index",
        "alter table t add constraint k primary key using index i",
        """- column rowid bigint not null hidden
           - primary t_pkey (rowid)
           - unique index i (id)
           + primary k (id)""",
        columns=KEYLESS,
        setup=("create unique index i on t (id)",),
        refuses=TRY_AGAIN,
    ),
    Case(
        "replace primary key",
        "alter table t drop constraint t_pkey, add primary key (a)",
        """- primary t_pkey (id)
           + primary t_pkey (a)""",
        setup=("create index i on t (c)",),
        refuses=TRY_AGAIN,
        spoil=_DUPLICATE,
        repair=_REMOVE,
    ),
    Case(
        "add primary key over duplicates",
        "alter table t add primary key (id)",
        """- column rowid bigint not null hidden
           - primary t_pkey (rowid)
           + primary t_pkey (id)""",
        columns=KEYLESS,
        setup=("insert into t (id, a, b, c, n) values (90001, 50010, 'x', 1, 1), (90001, 50020, 'y', 1, 1)",),
        fails="23505",
        repair=_REMOVE,
    ),
    Case(
        "drop primary key",
        "alter table t drop constraint t_pkey",
        """- primary t_pkey (id)
           + column rowid bigint not null hidden
           + primary t_pkey (rowid)""",
        setup=("create unique index i on t (a)", "create index j on t (b) include (c)"),
        refuses=TRY_AGAIN,
        in_two=True,
    ),
    Case(
        "drop primary key with its column",
        "alter table t drop column a, alter n set not null",
        """- column a integer not null
           - column n integer
           - primary t_pkey (a)
           + column n integer not null
           + column rowid bigint not null hidden
           + primary t_pkey (rowid)""",
        columns=COLUMNS.replace("id int primary key, a int not null", "id int not null, a int primary key"),
        setup=("create index j on t (b)",),
        refuses=TRY_AGAIN,
        spoil=("insert into {t} (id, a, b, c) values (90001, 50010, 'x', 1)", "23502"),
        repair=_REMOVE,
        in_two=True,
    ),
    Case(
        "drop check",
        "alter table t drop constraint t_c_check",
        "- check t_c_check: (c < 1000)",
        at_once=True,
    ),
    Case(
        "drop unique",
        "alter table t drop constraint u",
        "- unique index u (a) constraint",
        setup=("alter table t add constraint u unique (a)",),
        at_once=True,
    ),
    Case(
        "drop foreign key",
        "alter table t drop constraint f",
        "- foreign key f (c)",
        setup=(*_PARENTS, "alter table t add constraint f foreign key (c) references q (id)"),
        at_once=True,
    ),
    Case(
        "rename constraint",
        "alter table t rename constraint t_c_check to k",
        """- check t_c_check: (c < 1000)
           + check k: (c < 1000)""",
        at_once=True,
    ),
)

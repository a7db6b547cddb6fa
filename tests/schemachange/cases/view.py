"""What views read and columns draw from: tables change under the ones, and the others change under tables."""

from tests.schemachange.case import TRY_AGAIN, Case

# The second reads the first.
_VIEWS = ("create view v as select id, b, c from t", "create view u as select id, b from v where c > 1")
# Whatever t has become: in the end the views show what they showed, of the rows that there are.
_AS_BEFORE = (
    "select id, b, c from v except all select id, b, c from w",
    "select id, b, c from w except all select id, b, c from v",
    "select id, b from u except all select id, b from w where c > 1",
    "select id, b from w where c > 1 except all select id, b from u",
)
_DRAWN = ("create sequence z", "alter table t add column s bigint default nextval('z')")

CASES = (
    Case(
        "under a view: rename column",
        "alter table t rename column b to e",
        """- column b text
           + column e text""",
        setup=_VIEWS,
        renames={"b": "e"},
        at_once=True,
        none=_AS_BEFORE,
    ),
    Case(
        "under a view: rename table",
        "alter table t rename to t2",
        """- table t
           + table t2""",
        setup=_VIEWS,
        at_once=True,
        none=_AS_BEFORE,
    ),
    Case(
        "under a view: drop and add a column that it does not read",
        "alter table t drop column n, add column d int not null default 7",
        """- column n integer
           + column d integer not null default '7'::integer reads as 7""",
        setup=_VIEWS,
        at_once=True,
        none=_AS_BEFORE,
    ),
    Case(
        "under a view: alter primary key",
        "alter table t alter primary key using columns (a)",
        """- primary t_pkey (id)
           + primary t_pkey (a)
           + unique index t_id_key (id) constraint""",
        setup=_VIEWS,
        refuses=TRY_AGAIN,
        none=_AS_BEFORE,
    ),
    Case(
        "replace a view",
        "create or replace view v as select id, b, c, a + 1 as next from t",
        "",
        setup=_VIEWS,
        at_once=True,
        none=(*_AS_BEFORE, "select id from v where next is null"),
    ),
    Case(
        "alter sequence that a column draws from",
        "alter sequence z increment by 10 restart with 1000000",
        "",
        setup=_DRAWN,
        at_once=True,
        none=("select id from t where s is null",),
    ),
    Case(
        "drop sequence that a column draws from",
        "drop sequence z cascade",
        """- column s bigint default nextval
           + column s bigint""",
        setup=_DRAWN,
        at_once=True,
    ),
)

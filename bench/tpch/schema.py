"""The eight tables in PostgreSQL's dialect, each with its primary key, in the order in which they are loaded."""

TABLES = {
    "region": """
        r_regionkey integer, r_name varchar(25) not null, r_comment varchar(152),
        primary key (r_regionkey)
    """,
    "nation": """
        n_nationkey integer, n_name varchar(25) not null, n_regionkey integer not null, n_comment varchar(152),
        primary key (n_nationkey)
    """,
    "supplier": """
        s_suppkey integer, s_name varchar(25) not null, s_address varchar(40) not null, s_nationkey integer not null,
        s_phone varchar(15) not null, s_acctbal numeric(15,2) not null, s_comment varchar(101) not null,
        primary key (s_suppkey)
    """,
    "customer": """
        c_custkey integer, c_name varchar(25) not null, c_address varchar(40) not null, c_nationkey integer not null,
        c_phone varchar(15) not null, c_acctbal numeric(15,2) not null, c_mktsegment varchar(10) not null,
        c_comment varchar(117) not null,
        primary key (c_custkey)
    """,
    "part": """
        p_partkey integer, p_name varchar(55) not null, p_mfgr varchar(25) not null, p_brand varchar(10) not null,
        p_type varchar(25) not null, p_size integer not null, p_container varchar(10) not null,
        p_retailprice numeric(15,2) not null, p_comment varchar(23) not null,
        primary key (p_partkey)
    """,
    "partsupp": """
        ps_partkey integer, ps_suppkey integer, ps_availqty integer not null, ps_supplycost numeric(15,2) not null,
        ps_comment varchar(199) not null,
        primary key (ps_partkey, ps_suppkey)
    """,
    "orders": """
        o_orderkey bigint, o_custkey integer not null, o_orderstatus varchar(1) not null,
        o_totalprice numeric(15,2) not null, o_orderdate date not null, o_orderpriority varchar(15) not null,
        o_clerk varchar(15) not null, o_shippriority integer not null, o_comment varchar(79) not null,
        primary key (o_orderkey)
    """,
    "lineitem": """
        l_orderkey bigint, l_partkey integer not null, l_suppkey integer not null, l_linenumber integer,
        l_quantity numeric(15,2) not null, l_extendedprice numeric(15,2) not null, l_discount numeric(15,2) not null,
        l_tax numeric(15,2) not null, l_returnflag varchar(1) not null, l_linestatus varchar(1) not null,
        l_shipdate date not null, l_commitdate date not null, l_receiptdate date not null,
        l_shipinstruct varchar(25) not null, l_shipmode varchar(10) not null, l_comment varchar(44) not null,
        primary key (l_orderkey, l_linenumber)
    """,
}

# One row in a hundred, all over the tables: the condition picks them and the
# assignments change what the queries sum up.
UPDATES = {
    "orders": ("(o_orderkey / 32 + o_orderkey) % 100 = 7", {"o_totalprice": "o_totalprice + 1"}),
    "lineitem": (
        "(l_orderkey / 32 + l_orderkey) % 100 = 7",
        {"l_extendedprice": "l_extendedprice + 1", "l_tax": "0.03"},
    ),
}


def create_sql(table: str) -> str:
    return f"create table {table} ({TABLES[table]})"


def update_sql(table: str) -> str:
    condition, assignments = UPDATES[table]
    changes = ", ".join(f"{column} = {value}" for column, value in assignments.items())
    return f"update {table} set {changes} where {condition}"

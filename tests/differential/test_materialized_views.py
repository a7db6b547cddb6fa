"""Materialized views: the same statements have the same outcome in PostgreSQL, in order, and the catalogs show the
same."""

from pathlib import Path

from tests.differential.both import open_both, values
from tests.support.postgres import LocalPostgres

_STATEMENTS = """
CREATE TABLE sales (id int PRIMARY KEY, shop text, amount int, at date)
INSERT INTO sales SELECT i, 'shop ' || i % 3, i, date '2024-01-01' + i FROM generate_series(1, 30) i
CREATE MATERIALIZED VIEW totals AS SELECT shop, sum(amount) AS total, count(*) AS n, max(at) AS last FROM sales GROUP BY 1
CREATE MATERIALIZED VIEW empty (a, b) AS SELECT id, shop FROM sales WITH NO DATA
CREATE MATERIALIZED VIEW stacked AS SELECT shop || '!' AS shop, total FROM totals WHERE total > 0
CREATE MATERIALIZED VIEW constants AS VALUES (1, 'a'), (2, 'b')
CREATE MATERIALIZED VIEW totals AS SELECT 1
CREATE MATERIALIZED VIEW IF NOT EXISTS totals AS SELECT 1
CREATE MATERIALIZED VIEW twice AS SELECT id, id FROM sales
CREATE MATERIALIZED VIEW many (a, b, c) AS SELECT id, shop FROM sales
CREATE MATERIALIZED VIEW nothing AS SELECT * FROM nowhere
SELECT * FROM totals
SELECT * FROM empty
SELECT * FROM stacked
SELECT * FROM constants
CREATE VIEW plain AS SELECT a FROM empty
SELECT * FROM plain
INSERT INTO sales VALUES (100, 'shop 7', 5)
SELECT * FROM totals WHERE shop = 'shop 7'
REFRESH MATERIALIZED VIEW totals
SELECT * FROM totals WHERE shop = 'shop 7'
SELECT * FROM stacked WHERE shop LIKE '%7!'
REFRESH MATERIALIZED VIEW CONCURRENTLY totals
CREATE UNIQUE INDEX totals_key ON totals (shop)
CREATE INDEX totals_last ON totals (last DESC) INCLUDE (n)
INSERT INTO sales VALUES (101, 'shop 8', 5)
REFRESH MATERIALIZED VIEW CONCURRENTLY totals
SELECT * FROM totals
REFRESH MATERIALIZED VIEW CONCURRENTLY empty
REFRESH MATERIALIZED VIEW CONCURRENTLY totals WITH NO DATA
REFRESH MATERIALIZED VIEW sales
REFRESH MATERIALIZED VIEW plain
REFRESH MATERIALIZED VIEW nowhere
INSERT INTO totals (shop) VALUES ('x')
UPDATE totals SET n = 1
DELETE FROM totals
TRUNCATE totals
ALTER TABLE totals ADD COLUMN z int
ALTER TABLE totals ADD CHECK (n > 0)
ALTER TABLE totals ADD PRIMARY KEY (shop)
CREATE TABLE child (shop text REFERENCES totals (shop))
CREATE TABLE copied (LIKE totals)
DROP TABLE totals
DROP VIEW totals
DROP INDEX totals
DROP SEQUENCE totals
CREATE TABLE totals (id int)
CREATE TYPE totals AS ENUM ('a')
ALTER VIEW totals RENAME TO other
ALTER TABLE sales RENAME amount TO price
REFRESH MATERIALIZED VIEW totals
ALTER TABLE sales DROP COLUMN price
DROP TABLE sales
DROP MATERIALIZED VIEW totals
COMMENT ON MATERIALIZED VIEW totals IS 'sums'
COMMENT ON COLUMN totals.n IS 'number'
COMMENT ON VIEW totals IS 'x'
COMMENT ON TABLE totals IS 'x'
SELECT obj_description('totals'::regclass), col_description('totals'::regclass, 3)
CREATE SCHEMA later
ALTER MATERIALIZED VIEW IF EXISTS nowhere RENAME TO other
ALTER MATERIALIZED VIEW sales RENAME TO other
ALTER MATERIALIZED VIEW constants RENAME TO fixed
ALTER MATERIALIZED VIEW fixed SET SCHEMA later
ALTER TABLE later.fixed RENAME TO fixed2
GRANT SELECT ON totals TO PUBLIC
SELECT schemaname, matviewname, hasindexes, ispopulated FROM pg_matviews
SELECT relname, relkind, relispopulated, relhasindex, relnatts FROM pg_class WHERE relname ~ 'totals|empty|fixed|stacked' AND relkind <> 'S'
SELECT attname, attnum, atttypid::regtype::text, attnotnull FROM pg_attribute WHERE attrelid = 'totals'::regclass AND attnum > 0
SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'totals'
SELECT tablename FROM pg_tables WHERE schemaname IN ('public', 'later')
SELECT table_name, table_type FROM information_schema.tables WHERE table_schema IN ('public', 'later')
SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'
SELECT has_table_privilege('totals', 'SELECT'), 'totals'::regclass::text
SELECT classid::regclass::text, deptype, refclassid::regclass::text FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid WHERE r.ev_class = 'stacked'::regclass AND d.refobjid = 'totals'::regclass AND d.refobjsubid > 0
REFRESH MATERIALIZED VIEW totals WITH NO DATA
SELECT count(*) FROM totals
SELECT count(*) FROM stacked
REFRESH MATERIALIZED VIEW stacked
SELECT ispopulated FROM pg_matviews WHERE matviewname = 'totals'
REFRESH MATERIALIZED VIEW totals WITH DATA
BEGIN
DELETE FROM sales WHERE shop = 'shop 8'
REFRESH MATERIALIZED VIEW totals
SELECT count(*) FROM totals
SAVEPOINT s
REFRESH MATERIALIZED VIEW totals WITH NO DATA
ROLLBACK TO s
SELECT count(*) FROM totals
ROLLBACK
SELECT count(*) FROM totals
BEGIN
CREATE MATERIALIZED VIEW late AS SELECT count(*) AS n FROM sales
CREATE UNIQUE INDEX ON late (n)
INSERT INTO sales VALUES (200, 'shop 0', 1)
SELECT * FROM late
REFRESH MATERIALIZED VIEW CONCURRENTLY late
SELECT * FROM late
COMMIT
SELECT * FROM late
CREATE MATERIALIZED VIEW single AS SELECT id % 2 AS k FROM sales WHERE id < 2
CREATE UNIQUE INDEX ON single (k)
ALTER TABLE sales ALTER COLUMN id SET DEFAULT 5
DROP MATERIALIZED VIEW totals CASCADE
SELECT matviewname FROM pg_matviews
DROP TABLE sales CASCADE
SELECT matviewname FROM pg_matviews
SELECT viewname FROM pg_views WHERE schemaname = 'public'
DROP MATERIALIZED VIEW IF EXISTS later.fixed2, nowhere
DROP MATERIALIZED VIEW nowhere
"""  # noqa: E501 - one statement on each line


def test_statements_have_the_same_outcome(postgres_server: LocalPostgres, tmp_path: Path) -> None:
    different = []
    with open_both(postgres_server, tmp_path) as both:
        for statement in _STATEMENTS.strip().split("\n"):
            expected, actual = values(both.ask_postgres(statement)), values(both.ask_ours(statement))
            if expected != actual:
                different.append(f"{statement}\n    PostgreSQL {expected}\n    ours       {actual}")
    assert not different, "\n".join(different)

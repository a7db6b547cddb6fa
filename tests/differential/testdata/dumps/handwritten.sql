CREATE SCHEMA inventory;
CREATE TABLE inventory.warehouse (code char(4) PRIMARY KEY, city text NOT NULL, opened date DEFAULT '2000-01-01');
CREATE TABLE inventory.product (sku text PRIMARY KEY CHECK (length(sku) BETWEEN 3 AND 12), name text NOT NULL, price numeric(8,2) NOT NULL CHECK (price > 0), weight real, discontinued boolean NOT NULL DEFAULT false, CONSTRAINT cheap_or_heavy CHECK (price < 1000 OR weight > 1));
CREATE TABLE inventory.stock (warehouse char(4) NOT NULL REFERENCES inventory.warehouse ON UPDATE CASCADE, sku text NOT NULL REFERENCES inventory.product ON DELETE CASCADE, quantity integer NOT NULL DEFAULT 0, reserved integer NOT NULL DEFAULT 0, available integer GENERATED ALWAYS AS (quantity - reserved) STORED, PRIMARY KEY (warehouse, sku), CHECK (reserved <= quantity));
CREATE TABLE inventory.movement (id bigserial PRIMARY KEY, warehouse char(4) NOT NULL, sku text NOT NULL, delta integer NOT NULL, moved_at timestamptz NOT NULL DEFAULT now(), reason text, FOREIGN KEY (warehouse, sku) REFERENCES inventory.stock (warehouse, sku) DEFERRABLE);
CREATE INDEX movement_recent ON inventory.movement (moved_at DESC);
CREATE INDEX product_name_lower ON inventory.product (lower(name));
CREATE UNIQUE INDEX product_active_name ON inventory.product (name) WHERE NOT discontinued;
CREATE VIEW inventory.low_stock AS SELECT s.sku, p.name, sum(s.quantity) AS total FROM inventory.stock s JOIN inventory.product p ON p.sku = s.sku GROUP BY s.sku, p.name HAVING sum(s.quantity) < 10;
CREATE SEQUENCE inventory.ticket START 1000 INCREMENT 10 CYCLE MAXVALUE 1030;
COMMENT ON SCHEMA inventory IS 'things in places';
COMMENT ON VIEW inventory.low_stock IS 'order these';
INSERT INTO inventory.warehouse VALUES ('A1', 'Oslo', DEFAULT), ('B2', 'Bergen', '2010-05-05');
INSERT INTO inventory.product (sku, name, price, weight) VALUES ('NUT-1', 'Nut', 0.05, 0.01), ('BOLT-1', 'Bolt', 0.10, NULL), ('MILL', 'Mill', 1500, 20);
INSERT INTO inventory.stock (warehouse, sku, quantity, reserved) VALUES ('A1', 'NUT-1', 100, 10), ('A1', 'BOLT-1', 5, 5), ('B2', 'MILL', 1, 0);
INSERT INTO inventory.movement (warehouse, sku, delta, moved_at, reason) VALUES ('A1', 'NUT-1', -10, '2024-01-01 00:00+00', 'sale'), ('A1', 'NUT-1', 5, '2024-01-02 00:00+00', NULL), ('B2', 'MILL', 1, '2024-01-03 12:00+02', 'it''s new');
INSERT INTO inventory.product (sku, name, price) VALUES ('X', 'Too short', 1);
INSERT INTO inventory.product (sku, name, price) VALUES ('DEAR', 'Dear', 5000);
INSERT INTO inventory.product (sku, name, price) VALUES ('NUT-2', 'Nut', 1);
INSERT INTO inventory.stock (warehouse, sku, quantity, reserved) VALUES ('A1', 'MILL', 1, 2);
INSERT INTO inventory.stock (warehouse, sku, available) VALUES ('A1', 'MILL', 2);
SET search_path = inventory, public;
CREATE TABLE inventory.checked (
    code text PRIMARY KEY CHECK (code ~ '^a.+b$'),
    n integer CHECK (to_char(n, 'FM000') <> '007'),
    doc jsonb CHECK (jsonb_typeof(doc) = 'object'),
    tags text[]
);
CREATE INDEX ON inventory.checked (initcap(code));
INSERT INTO inventory.checked VALUES ('axb', 1, '{"k": 1.50}', '{x,y}');
INSERT INTO inventory.checked VALUES ('ab', 1);
INSERT INTO inventory.checked VALUES ('axxb', 7);
INSERT INTO inventory.checked VALUES ('axxb', 8, '[]');
INSERT INTO inventory.checked VALUES (E'a\nb', 8, '{}', '{}');
CREATE TABLE inventory.printed (
    id integer PRIMARY KEY CHECK (id > -5 AND id * 2 < id + 100),
    kind text CHECK (kind IN ('a', 'any(b)', 'c LIKE d')),
    n integer CHECK (n NOT IN (7, 8))
);
CREATE INDEX ON inventory.printed (n) INCLUDE (kind);
CREATE INDEX ON inventory.printed ((n + 1), kind);
CREATE INDEX ON inventory.printed ((n > 1));
CREATE TABLE inventory.copied AS SELECT w.*, s.available AS left_over FROM inventory.warehouse w JOIN inventory.stock s ON s.warehouse = w.code;
ALTER TABLE inventory.checked ADD CONSTRAINT late CHECK (length(code) > 3) NOT VALID;
ALTER TABLE inventory.checked ADD CONSTRAINT later FOREIGN KEY (code) REFERENCES inventory.product NOT VALID;
ALTER TABLE inventory.checked ADD CONSTRAINT proven CHECK (n > 0) NOT VALID;
ALTER TABLE inventory.checked VALIDATE CONSTRAINT proven;
ALTER TABLE inventory.checked VALIDATE CONSTRAINT late;
-- queries
SELECT relname, pg_get_indexdef(i.indexrelid, 1, true), pg_get_indexdef(i.indexrelid, 1, false), pg_get_expr(i.indexprs, i.indrelid), pg_get_expr(i.indpred, i.indrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = 'inventory.printed'::regclass;
SELECT conname, convalidated FROM pg_constraint WHERE conname IN ('late', 'later', 'proven');
SELECT * FROM low_stock ORDER BY sku;
SELECT w.city, count(s.sku), coalesce(sum(s.available), 0) FROM warehouse w LEFT JOIN stock s ON s.warehouse = w.code GROUP BY w.city ORDER BY 1;
SELECT sku, delta, sum(delta) OVER (PARTITION BY sku ORDER BY moved_at) AS running FROM movement ORDER BY id;
SELECT nextval('ticket'), nextval('ticket'), currval('ticket');
SELECT code, length(code), code = 'A1  ', code || '|' FROM warehouse ORDER BY code;
SELECT extract(hour from moved_at), to_char(moved_at, 'YYYY-MM-DD HH24:MI') FROM movement ORDER BY id;
UPDATE warehouse SET code = 'A9' WHERE code = 'A1';
UPDATE product SET discontinued = true WHERE sku = 'NUT-1' RETURNING name, discontinued;
INSERT INTO product (sku, name, price) VALUES ('NUT-2', 'Nut', 1);
DELETE FROM product WHERE sku = 'MILL';
SELECT p.name, s.quantity FROM product p LEFT JOIN stock s USING (sku) ORDER BY 1, 2;
SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'inventory' AND is_nullable = 'NO' ORDER BY 1, 2;
SELECT price::text, weight::text, -price, price / 3 > 0, round(price * 1.255, 2) FROM product ORDER BY sku;
SELECT code, tags || code, code || tags, tags || tags, code || code FROM inventory.checked;
SELECT c.code, c.n, count(e.key), to_jsonb(c.tags) FROM inventory.checked c LEFT JOIN LATERAL jsonb_each(c.doc) e ON true GROUP BY c.code;
UPDATE inventory.checked SET doc = jsonb_set(doc, '{k}', to_jsonb(n)), tags = array_remove(tags, 'x') WHERE code = 'axb' RETURNING doc, tags;

-- Snapshots that were exported for other engines. Until they expire, the floor stays at or below `held`.

CREATE TABLE export (
    table_id INTEGER NOT NULL,
    snapshot INTEGER NOT NULL,
    held INTEGER NOT NULL,
    metadata TEXT NOT NULL,
    created_us INTEGER NOT NULL,
    expires_us INTEGER NOT NULL,
    PRIMARY KEY (table_id, snapshot)) WITHOUT ROWID;

-- Whether a version with the index as a public one was ever published.
ALTER TABLE index_owner ADD COLUMN public INTEGER NOT NULL DEFAULT 1;

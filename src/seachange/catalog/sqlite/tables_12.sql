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

-- What the nodes of the database share: at most one row, which is in no copy.
CREATE TABLE secret (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    value TEXT NOT NULL);

-- The history of schema changes: `seq` is that of the commit that publishes the change, and its id.
CREATE TABLE change (seq INTEGER PRIMARY KEY, timestamp_us INTEGER NOT NULL, body TEXT NOT NULL);

-- What other nodes ask of sessions of a node, until its next heartbeat: NUMBER:REQUEST, separated by spaces.
ALTER TABLE node ADD COLUMN asked TEXT NOT NULL DEFAULT '';

-- Positions in the log that consumers keep. The floor stays at or below those of feeds that have not ended.
CREATE TABLE feed (
    database TEXT NOT NULL,
    name TEXT NOT NULL,
    owner TEXT NOT NULL,
    tables TEXT NOT NULL,
    position INTEGER NOT NULL,
    created_us INTEGER NOT NULL,
    ended TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (database, name)) WITHOUT ROWID;

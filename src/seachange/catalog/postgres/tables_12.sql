-- Snapshots that were exported for other engines. Until they expire, the floor stays at or below `held`.

CREATE TABLE seachange.export (
    table_id bigint NOT NULL,
    snapshot bigint NOT NULL,
    held bigint NOT NULL,
    metadata text NOT NULL,
    created_us bigint NOT NULL,
    expires_us bigint NOT NULL,
    PRIMARY KEY (table_id, snapshot)
);

-- Whether a version with the index as a public one was ever published.
ALTER TABLE seachange.index_owner ADD COLUMN public boolean NOT NULL DEFAULT true;

-- What the nodes of the database share: at most one row, which is in no copy.
CREATE TABLE seachange.secret (
    id bigint PRIMARY KEY CHECK (id = 1),
    value text NOT NULL
);

-- The history of schema changes: `seq` is that of the commit that publishes the change, and its id.
CREATE TABLE seachange.change (seq bigint PRIMARY KEY, timestamp_us bigint NOT NULL, body text NOT NULL);

-- What other nodes ask of sessions of a node, until its next heartbeat: NUMBER:REQUEST, separated by spaces.
ALTER TABLE seachange.node ADD COLUMN asked text NOT NULL DEFAULT '';

-- Positions in the log that consumers keep. The floor stays at or below those of feeds that have not ended.
CREATE TABLE seachange.feed (
    database text NOT NULL,
    name text NOT NULL,
    owner text NOT NULL,
    tables text NOT NULL,
    position bigint NOT NULL,
    created_us bigint NOT NULL,
    ended text NOT NULL DEFAULT '',
    PRIMARY KEY (database, name)
);

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

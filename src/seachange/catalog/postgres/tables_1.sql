-- The tables of a PostgreSQL catalog, format 1.
--
-- The log has a row of sequence 0, before every commit, so that it is never
-- empty and the head is its last row.

CREATE SCHEMA seachange;

CREATE TABLE seachange.sequencer (
    one smallint PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    format integer NOT NULL DEFAULT 0,
    floor bigint NOT NULL DEFAULT 0,
    next_epoch bigint NOT NULL DEFAULT 1,
    next_id bigint NOT NULL DEFAULT 1,
    next_segment bigint NOT NULL DEFAULT 1,
    next_generation bigint NOT NULL DEFAULT 1,
    -- The first sequence that no partition of the inline batches holds.
    partitioned bigint NOT NULL DEFAULT 0
);
INSERT INTO seachange.sequencer DEFAULT VALUES;

CREATE TABLE seachange.node (
    epoch bigint PRIMARY KEY,
    name text NOT NULL,
    live boolean NOT NULL,
    low_water bigint NOT NULL,
    heartbeat_us bigint NOT NULL,
    expiry_ms bigint NOT NULL,
    format integer NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE seachange.log (
    seq bigint PRIMARY KEY,
    timestamp_us bigint NOT NULL,
    commit_id bytea NOT NULL UNIQUE,
    writes bigint[] NOT NULL,
    shares bigint[] NOT NULL,
    bulk bigint[] NOT NULL,
    touched bigint[] NOT NULL,
    parts integer NOT NULL
);
INSERT INTO seachange.log VALUES (0, 0, '', '{}', '{}', '{}', '{}', 0);

CREATE TABLE seachange.burned (
    commit_id bytea PRIMARY KEY,
    timestamp_us bigint NOT NULL
);

CREATE TABLE seachange.batch (
    seq bigint NOT NULL,
    ordinal integer NOT NULL,
    index_id bigint NOT NULL,
    layout_id bigint NOT NULL,
    rows bigint NOT NULL,
    payload bytea NOT NULL,
    PRIMARY KEY (seq, ordinal)
) PARTITION BY RANGE (seq);
CREATE INDEX batch_index ON seachange.batch (index_id, seq);
-- Compressing would cost more, under the lock, than it saves.
ALTER TABLE seachange.batch ALTER COLUMN payload SET STORAGE EXTERNAL;

CREATE TABLE seachange.batch_partition (
    first bigint PRIMARY KEY,
    beyond bigint NOT NULL
);

CREATE TABLE seachange.intent (
    segment_id bigint PRIMARY KEY,
    epoch bigint NOT NULL
);

CREATE TABLE seachange.segment (
    id bigint PRIMARY KEY,
    index_id bigint NOT NULL,
    layout_id bigint NOT NULL,
    kind smallint NOT NULL,
    seq bigint NOT NULL,
    fresh boolean NOT NULL,
    rows bigint NOT NULL,
    size_bytes bigint NOT NULL,
    checksum bytea NOT NULL,
    key_min bytea NOT NULL,
    key_max bytea NOT NULL,
    -- The commit that attached it, as long as it is a delta.
    delta bigint
);
CREATE INDEX segment_delta ON seachange.segment (index_id, delta) WHERE delta IS NOT NULL;
CREATE INDEX segment_seq ON seachange.segment (delta) WHERE delta IS NOT NULL;

CREATE TABLE seachange.garbage (segment_id bigint PRIMARY KEY);

CREATE TABLE seachange.generation (
    id bigint PRIMARY KEY,
    index_id bigint NOT NULL,
    base bigint NOT NULL,
    swap bigint NOT NULL
);
CREATE INDEX generation_index ON seachange.generation (index_id, id);
CREATE INDEX generation_swap ON seachange.generation (swap);

CREATE TABLE seachange.generation_member (
    generation_id bigint NOT NULL,
    ordinal integer NOT NULL,
    segment_id bigint NOT NULL,
    deleted bytea NOT NULL,
    PRIMARY KEY (generation_id, ordinal)
);
CREATE INDEX member_segment ON seachange.generation_member (segment_id);

CREATE TABLE seachange.descriptor (
    id bigint PRIMARY KEY,
    version bigint NOT NULL,
    name text NOT NULL,
    live boolean NOT NULL,
    min_version bigint NOT NULL,
    changed bigint NOT NULL
);
CREATE INDEX descriptor_name ON seachange.descriptor (name);

CREATE TABLE seachange.descriptor_version (
    id bigint NOT NULL,
    version bigint NOT NULL,
    seq bigint NOT NULL,
    body text,
    PRIMARY KEY (id, version)
);
CREATE INDEX descriptor_seq ON seachange.descriptor_version (seq);
-- Which descriptor an index belongs to, and the sequence from which no version
-- has it any more.
CREATE TABLE seachange.index_owner (
    index_id bigint PRIMARY KEY,
    descriptor_id bigint NOT NULL,
    dropped bigint
);
CREATE INDEX owner_descriptor ON seachange.index_owner (descriptor_id);

CREATE TABLE seachange.claim (
    resource text PRIMARY KEY,
    epoch bigint NOT NULL
);

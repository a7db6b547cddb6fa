-- The first format.

CREATE TABLE sequencer (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    format INTEGER NOT NULL,
    boot_id TEXT NOT NULL,
    floor INTEGER NOT NULL,
    next_epoch INTEGER NOT NULL,
    next_id INTEGER NOT NULL,
    next_segment INTEGER NOT NULL,
    next_generation INTEGER NOT NULL);
INSERT INTO sequencer VALUES (1, 0, '', 0, 1, 1, 1, 1);
CREATE TABLE node (
    epoch INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    live INTEGER NOT NULL,
    low_water INTEGER NOT NULL,
    heartbeat_us INTEGER NOT NULL,
    expiry_ms INTEGER NOT NULL,
    format INTEGER NOT NULL);
CREATE TABLE log (
    seq INTEGER PRIMARY KEY,
    timestamp_us INTEGER NOT NULL,
    commit_id BLOB NOT NULL UNIQUE,
    writes BLOB NOT NULL,
    shares BLOB NOT NULL,
    bulk BLOB NOT NULL,
    touched BLOB NOT NULL,
    parts INTEGER NOT NULL);
INSERT INTO log VALUES (0, 0, x'', x'', x'', x'', x'', 0);
CREATE TABLE burned (
    commit_id BLOB PRIMARY KEY,
    timestamp_us INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE batch (
    position INTEGER PRIMARY KEY,
    index_id INTEGER NOT NULL,
    layout_id INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    payload BLOB NOT NULL);
-- Entries of this index end with the position, in order.
CREATE INDEX batch_index ON batch (index_id);
CREATE TABLE intent (
    segment_id INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL);
CREATE TABLE segment (
    id INTEGER PRIMARY KEY,
    index_id INTEGER NOT NULL,
    layout_id INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    fresh INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    checksum BLOB NOT NULL,
    key_min BLOB NOT NULL,
    key_max BLOB NOT NULL,
    delta INTEGER);
CREATE INDEX segment_delta ON segment (index_id, delta) WHERE delta IS NOT NULL;
CREATE INDEX segment_seq ON segment (delta) WHERE delta IS NOT NULL;
CREATE TABLE garbage (segment_id INTEGER PRIMARY KEY);
CREATE TABLE generation (
    id INTEGER PRIMARY KEY,
    index_id INTEGER NOT NULL,
    base INTEGER NOT NULL,
    swap INTEGER NOT NULL);
CREATE INDEX generation_index ON generation (index_id, id);
CREATE INDEX generation_swap ON generation (swap);
CREATE TABLE generation_member (
    generation_id INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    segment_id INTEGER NOT NULL,
    deleted BLOB NOT NULL,
    PRIMARY KEY (generation_id, ordinal));
CREATE INDEX member_segment ON generation_member (segment_id);
CREATE TABLE descriptor (
    id INTEGER PRIMARY KEY,
    version INTEGER NOT NULL,
    name TEXT NOT NULL,
    live INTEGER NOT NULL,
    min_version INTEGER NOT NULL,
    changed INTEGER NOT NULL);
CREATE INDEX descriptor_name ON descriptor (name);
CREATE TABLE descriptor_version (
    id INTEGER NOT NULL,
    version INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    body TEXT,
    PRIMARY KEY (id, version));
CREATE INDEX descriptor_seq ON descriptor_version (seq);
-- The descriptor that an index belongs to, and the sequence from which on no version has it any more.
CREATE TABLE index_owner (
    index_id INTEGER PRIMARY KEY,
    descriptor_id INTEGER NOT NULL,
    dropped INTEGER);
CREATE INDEX owner_descriptor ON index_owner (descriptor_id);
CREATE TABLE claim (
    resource TEXT PRIMARY KEY,
    epoch INTEGER NOT NULL) WITHOUT ROWID;

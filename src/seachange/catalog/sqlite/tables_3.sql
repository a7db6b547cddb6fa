-- Jobs with their files, the event log, and the write marks of nodes.

ALTER TABLE node ADD COLUMN write_mark INTEGER NOT NULL DEFAULT 0;
ALTER TABLE node ADD COLUMN holders TEXT NOT NULL DEFAULT '[]';
ALTER TABLE sequencer ADD COLUMN next_job INTEGER NOT NULL DEFAULT 1;
CREATE TABLE job (
    id INTEGER PRIMARY KEY,
    revision INTEGER NOT NULL,
    status TEXT NOT NULL,
    request TEXT NOT NULL DEFAULT '',
    descriptors BLOB NOT NULL,
    body TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    created_us INTEGER NOT NULL,
    updated_us INTEGER NOT NULL,
    updated_seq INTEGER NOT NULL);
CREATE INDEX job_open ON job (id) WHERE status NOT IN ('succeeded', 'failed', 'canceled');
CREATE TABLE job_file (
    segment_id INTEGER PRIMARY KEY,
    job_id INTEGER NOT NULL);
CREATE INDEX job_file_job ON job_file (job_id);
CREATE TABLE event (
    id INTEGER PRIMARY KEY,
    timestamp_us INTEGER NOT NULL,
    job_id INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    text TEXT NOT NULL);
CREATE INDEX event_time ON event (timestamp_us);

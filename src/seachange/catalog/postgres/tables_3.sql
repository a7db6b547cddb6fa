-- Jobs with the files that they keep, the history, and who may still write below a publication.

ALTER TABLE seachange.node ADD COLUMN write_mark bigint NOT NULL DEFAULT 0;
ALTER TABLE seachange.node ADD COLUMN holders text NOT NULL DEFAULT '[]';
ALTER TABLE seachange.sequencer ADD COLUMN next_job bigint NOT NULL DEFAULT 1;

CREATE TABLE seachange.job (
    id bigint PRIMARY KEY,
    revision bigint NOT NULL,
    status text NOT NULL,
    request text NOT NULL DEFAULT '',
    descriptors bigint[] NOT NULL,
    body text NOT NULL,
    epoch bigint NOT NULL,
    created_us bigint NOT NULL,
    updated_us bigint NOT NULL,
    updated_seq bigint NOT NULL
);
CREATE INDEX job_open ON seachange.job (id) WHERE status NOT IN ('succeeded', 'failed', 'canceled');

CREATE TABLE seachange.job_file (
    segment_id bigint PRIMARY KEY,
    job_id bigint NOT NULL
);
CREATE INDEX job_file_job ON seachange.job_file (job_id);

CREATE TABLE seachange.event (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    timestamp_us bigint NOT NULL,
    job_id bigint NOT NULL,
    seq bigint NOT NULL,
    text text NOT NULL
);
CREATE INDEX event_time ON seachange.event (timestamp_us);

-- The state of sequences. A sequence that is restarted uses the next run.

CREATE TABLE sequence (
    id INTEGER NOT NULL,
    run INTEGER NOT NULL,
    last INTEGER NOT NULL,
    called INTEGER NOT NULL,
    PRIMARY KEY (id, run)) WITHOUT ROWID;

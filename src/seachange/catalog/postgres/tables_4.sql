-- How far sequences have come. A sequence that starts over does so under the next run.

CREATE TABLE seachange.sequence (
    id bigint NOT NULL,
    run bigint NOT NULL,
    last bigint,
    called boolean NOT NULL DEFAULT false,
    PRIMARY KEY (id, run)
);

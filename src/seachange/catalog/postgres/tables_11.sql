-- Rows that violate constraints which are not committed yet, beside the log entries of their commits.

CREATE TABLE seachange.violation (
    seq bigint NOT NULL,
    key bigint NOT NULL,
    text text NOT NULL,
    session text NOT NULL
);

-- Rows that violate constraints which are not committed yet, beside the log entries of their commits.

CREATE TABLE violation
    (seq INTEGER NOT NULL, key INTEGER NOT NULL, text TEXT NOT NULL, session TEXT NOT NULL);

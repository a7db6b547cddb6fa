-- How fast the statements of a node's clients are, in microseconds: now, and as a rule.

ALTER TABLE seachange.node ADD COLUMN latency_us bigint NOT NULL DEFAULT 0;
ALTER TABLE seachange.node ADD COLUMN usual_us bigint NOT NULL DEFAULT 0;

-- The latency of the statements of a node's clients: current and usual.

ALTER TABLE node ADD COLUMN latency_us INTEGER NOT NULL DEFAULT 0;
ALTER TABLE node ADD COLUMN usual_us INTEGER NOT NULL DEFAULT 0;

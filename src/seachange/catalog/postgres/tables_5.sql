-- The rules of schema changes that each node knows, and those that are agreed on.

ALTER TABLE seachange.node ADD COLUMN release integer NOT NULL DEFAULT 1;
ALTER TABLE seachange.sequencer ADD COLUMN release integer NOT NULL DEFAULT 1;

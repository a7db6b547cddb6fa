-- The release of the schema change rules that each node knows, and the agreed one.

ALTER TABLE node ADD COLUMN release INTEGER NOT NULL DEFAULT 1;
ALTER TABLE sequencer ADD COLUMN release INTEGER NOT NULL DEFAULT 1;

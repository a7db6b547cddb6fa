-- The id of the database, and checksums of inline batches; rows of an older program have none.

ALTER TABLE sequencer ADD COLUMN database_id TEXT;
ALTER TABLE batch ADD COLUMN checksum INTEGER;

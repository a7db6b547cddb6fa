-- The id of the database, and checksums of inline batches; what an older program wrote has none.

ALTER TABLE seachange.sequencer ADD COLUMN database_id text;
ALTER TABLE seachange.batch ADD COLUMN checksum bigint;

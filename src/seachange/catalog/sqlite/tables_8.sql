-- Requests for table locks, by number, and which of them a node has answered.

ALTER TABLE sequencer ADD COLUMN lock_requests INTEGER NOT NULL DEFAULT 0;
ALTER TABLE node ADD COLUMN answered INTEGER NOT NULL DEFAULT 0;
CREATE INDEX lock_table ON lock (strength) WHERE strength >= 11;

-- Requests for table locks, by number, and which of them a node has answered.

ALTER TABLE seachange.sequencer ADD COLUMN lock_requests bigint NOT NULL DEFAULT 0;
ALTER TABLE seachange.node ADD COLUMN answered bigint NOT NULL DEFAULT 0;
CREATE INDEX lock_table ON seachange.lock (strength) WHERE strength >= 11;

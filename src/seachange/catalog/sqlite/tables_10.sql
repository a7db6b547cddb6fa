-- Checksums of descriptors; rows of an older program have none.

ALTER TABLE descriptor_version ADD COLUMN checksum INTEGER;

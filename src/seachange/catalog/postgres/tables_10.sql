-- Checksums of descriptors; what an older program wrote has none.

ALTER TABLE seachange.descriptor_version ADD COLUMN checksum bigint;

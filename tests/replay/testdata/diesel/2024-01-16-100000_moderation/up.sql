CREATE TYPE moderation AS ENUM ('pending', 'approved');
ALTER TABLE comments ADD COLUMN moderation moderation NOT NULL DEFAULT 'pending';
ALTER TABLE comments ADD COLUMN updated_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP;

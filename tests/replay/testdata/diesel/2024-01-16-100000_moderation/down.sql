ALTER TABLE comments DROP COLUMN moderation, DROP COLUMN updated_at;

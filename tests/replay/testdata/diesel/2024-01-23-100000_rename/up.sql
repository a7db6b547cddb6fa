ALTER TABLE posts RENAME COLUMN body TO content;
ALTER TABLE posts ALTER COLUMN title TYPE TEXT;
ALTER TABLE comments ADD CONSTRAINT author_given CHECK (author <> '');

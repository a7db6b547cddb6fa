ALTER TABLE posts RENAME COLUMN content TO body;

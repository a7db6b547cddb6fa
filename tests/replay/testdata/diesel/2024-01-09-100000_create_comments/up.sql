CREATE TABLE comments (
  id BIGSERIAL PRIMARY KEY,
  post_id INTEGER NOT NULL REFERENCES posts(id) ON DELETE CASCADE,
  author TEXT,
  body TEXT NOT NULL
);
CREATE INDEX comments_post_id ON comments (post_id);

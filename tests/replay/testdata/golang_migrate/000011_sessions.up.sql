CREATE TABLE sessions (
    token UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    user_id INT NOT NULL REFERENCES users ON DELETE CASCADE,
    data JSONB NOT NULL DEFAULT '{}',
    expires TIMESTAMPTZ NOT NULL DEFAULT now() + interval '1 day'
);

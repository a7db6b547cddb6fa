-- Locks between nodes, and their waiters.

CREATE TABLE lock (
    key INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    actor INTEGER NOT NULL,
    scope INTEGER NOT NULL,
    strength INTEGER NOT NULL,
    guard INTEGER NOT NULL,
    PRIMARY KEY (key, epoch, actor, scope)) WITHOUT ROWID;
CREATE INDEX lock_guard ON lock (guard);
CREATE INDEX lock_owner ON lock (epoch, actor, scope);
CREATE TABLE lock_wait (
    turn INTEGER PRIMARY KEY,
    key INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    actor INTEGER NOT NULL,
    strength INTEGER NOT NULL,
    UNIQUE (epoch, actor));
CREATE INDEX lock_wait_key ON lock_wait (key);

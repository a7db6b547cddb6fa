-- Locks between nodes, and who waits for them.
--
-- Only live epochs have any: they are taken under the sequencer lock and end
-- with the epoch, under the same. To give one up takes no lock.

CREATE TABLE seachange.lock (
    key bigint NOT NULL,
    epoch bigint NOT NULL,
    actor bigint NOT NULL,
    scope bigint NOT NULL,
    strength bigint NOT NULL,
    -- The hash whose writing it stands against.
    guard bigint NOT NULL,
    PRIMARY KEY (key, epoch, actor, scope)
);
CREATE INDEX lock_guard ON seachange.lock (guard);
CREATE INDEX lock_owner ON seachange.lock (epoch, actor, scope);

CREATE TABLE seachange.lock_wait (
    turn bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key bigint NOT NULL,
    epoch bigint NOT NULL,
    actor bigint NOT NULL,
    strength bigint NOT NULL,
    UNIQUE (epoch, actor)
);
CREATE INDEX lock_wait_key ON seachange.lock_wait (key);

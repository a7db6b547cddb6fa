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

-- By other holders and, unless the actor has a part of the lock already, by
-- those who came first. Strengths that add up to five exclude each other.
CREATE FUNCTION seachange.is_blocked(my_epoch bigint, my_actor bigint, my_key bigint, my_strength bigint)
RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT 1 FROM seachange.lock l WHERE l.key = my_key AND l.strength + my_strength >= 5
            AND (l.epoch, l.actor) <> (my_epoch, my_actor))
        OR (EXISTS (SELECT 1 FROM seachange.lock_wait w WHERE w.key = my_key AND w.strength + my_strength >= 5
                AND (w.epoch, w.actor) <> (my_epoch, my_actor)
                AND w.turn < coalesce((SELECT m.turn FROM seachange.lock_wait m
                    WHERE m.epoch = my_epoch AND m.actor = my_actor AND m.key = my_key), 9223372036854775807))
            AND NOT EXISTS (SELECT 1 FROM seachange.lock o
                WHERE o.key = my_key AND o.epoch = my_epoch AND o.actor = my_actor))
$$;

-- Grants wishes, triples of key, strength and guard, in order, at most `most`.
-- `policy` is what to do about the first that is blocked: 0 waits for it, 1
-- gives up, 2 goes on to the next. `head` is null for an epoch that has ended.
CREATE FUNCTION seachange.take_locks(
    my_epoch bigint, my_actor bigint, my_scope bigint, wishes bigint[], policy bigint, most bigint
) RETURNS TABLE (head bigint, granted boolean[]) LANGUAGE plpgsql AS $$
DECLARE
    my_key bigint;
    my_strength bigint;
    amount bigint := 0;
BEGIN
    PERFORM seachange.lock_sequencer();
    granted := '{}';
    IF NOT seachange.is_live(my_epoch) THEN RETURN NEXT; RETURN; END IF;
    head := seachange.head();
    FOR i IN 1 .. cardinality(wishes) BY 3 LOOP
        EXIT WHEN amount >= most;
        my_key := wishes[i]; my_strength := wishes[i + 1];
        IF NOT seachange.is_blocked(my_epoch, my_actor, my_key, my_strength) THEN
            INSERT INTO seachange.lock AS l VALUES (my_key, my_epoch, my_actor, my_scope, my_strength, wishes[i + 2])
                ON CONFLICT (key, epoch, actor, scope) DO UPDATE SET strength = excluded.strength, guard = excluded.guard
                WHERE excluded.strength > l.strength;
            granted := granted || true;
            amount := amount + 1;
            CONTINUE;
        END IF;
        granted := granted || false;
        EXIT WHEN policy = 1;
        IF policy = 0 THEN
            PERFORM 1 FROM seachange.lock_wait w WHERE w.epoch = my_epoch AND w.actor = my_actor
                AND w.key = my_key AND w.strength = my_strength;
            IF NOT FOUND THEN
                DELETE FROM seachange.lock_wait w WHERE w.epoch = my_epoch AND w.actor = my_actor;
                INSERT INTO seachange.lock_wait (key, epoch, actor, strength)
                    VALUES (my_key, my_epoch, my_actor, my_strength);
            END IF;
            RETURN NEXT;
            RETURN;
        END IF;
    END LOOP;
    DELETE FROM seachange.lock_wait w WHERE w.epoch = my_epoch AND w.actor = my_actor;
    RETURN NEXT;
END $$;

CREATE FUNCTION seachange.forget_locks(my_epochs bigint[]) RETURNS void LANGUAGE sql AS $$
    DELETE FROM seachange.lock WHERE epoch = ANY (my_epochs);
    DELETE FROM seachange.lock_wait WHERE epoch = ANY (my_epochs);
$$;

CREATE OR REPLACE FUNCTION seachange.end_node(my_epoch bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM seachange.lock_sequencer();
    UPDATE seachange.node SET live = false WHERE epoch = my_epoch;
    PERFORM seachange.forget_locks(ARRAY[my_epoch]);
END $$;

CREATE OR REPLACE FUNCTION seachange.expire_nodes() RETURNS SETOF bigint LANGUAGE plpgsql AS $$
DECLARE
    expired bigint[];
BEGIN
    PERFORM seachange.lock_sequencer();
    WITH ended AS (
        UPDATE seachange.node n SET live = false
        WHERE n.live AND n.heartbeat_us + n.expiry_ms * 1000 < seachange.now_us() RETURNING n.epoch)
    SELECT coalesce(array_agg(epoch), '{}') INTO expired FROM ended;
    PERFORM seachange.forget_locks(expired);
    RETURN QUERY SELECT unnest(expired);
END $$;

-- Decides the members of a batch in order, each under its own sequence.
--
-- Per member, `positions` holds validated, oldest, parts and actor; `numbers` its
-- writes, shares, bulk, touched, versions (pairs) and batches (triples of index,
-- layout, rows), one after the other; `ends` where each of the six ends;
-- `payloads` what its batches hold; `changes` the rarer rest.
--
-- `code` is one of commit.Code; what a and b mean depends on it.
CREATE OR REPLACE FUNCTION seachange.commit_batch(
    my_epoch bigint, ids bytea[], positions bigint[], numbers bigint[], ends bigint[], payloads bytea[], changes jsonb[],
    span bigint
) RETURNS TABLE (code integer, a bigint, b bigint, detail text) LANGUAGE plpgsql AS $$
DECLARE
    head bigint;
    last_us bigint;
    low bigint;
    partitions bigint;
    alive boolean;
    now_us bigint;
    validated bigint;
    start bigint := 0;
    cut bigint[];
    payload_at integer := 0;
    batches integer;
    my_writes bigint[];
    my_shares bigint[];
    my_bulk bigint[];
    my_touched bigint[];
    my_changes jsonb;
    min_needed bigint;
    is_live boolean;
    is_touched boolean;
    needed bigint[];
    few boolean;
    repeated boolean := true;
    has_locks boolean;
BEGIN
    PERFORM pg_advisory_xact_lock(5873429021876);
    SELECT l.seq, l.timestamp_us, s.floor, s.partitioned, n.live, EXISTS (SELECT 1 FROM seachange.lock)
        INTO head, last_us, low, partitions, alive, has_locks
        FROM (SELECT o.seq, o.timestamp_us FROM seachange.log o ORDER BY o.seq DESC LIMIT 1) l,
            seachange.sequencer s LEFT JOIN seachange.node n ON n.epoch = my_epoch;
    now_us := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
    -- Hardly ever is an id known, so those of a batch are looked up together:
    -- each by the index, which a planner without statistics would not join by.
    IF cardinality(ids) > 1 THEN
        repeated := (SELECT count(DISTINCT u) < cardinality(ids)
                OR bool_or((SELECT l.seq FROM seachange.log l WHERE l.commit_id = u) IS NOT NULL)
                OR bool_or((SELECT n.timestamp_us FROM seachange.burned n WHERE n.commit_id = u) IS NOT NULL)
            FROM unnest(ids) u);
    END IF;

    <<members>>
    FOR i IN 1 .. cardinality(ids) LOOP
        cut := ends[i * 6 - 5 : i * 6];
        validated := positions[i * 4 - 3];
        batches := (cut[6] - cut[5]) / 3;
        my_changes := changes[i];

        code := NULL; detail := NULL;
        IF repeated THEN
            SELECT k.seq, k.timestamp_us INTO a, b FROM (
                SELECT l.seq, l.timestamp_us FROM seachange.log l WHERE l.commit_id = ids[i]
                UNION ALL SELECT -1, 0 FROM seachange.burned u WHERE u.commit_id = ids[i]) k;
            IF FOUND THEN
                code := CASE WHEN a = -1 THEN 7 ELSE 0 END;
            END IF;
        END IF;

        IF code IS NOT NULL THEN
            NULL;
        ELSIF alive IS NOT TRUE THEN
            code := 4; a := my_epoch;
        ELSIF validated < low OR positions[i * 4 - 2] < low THEN
            code := 5; a := low;
        END IF;

        -- Planned with versions that are still accepted?
        IF code IS NULL THEN
            FOR k IN cut[4] + 1 .. cut[5] BY 2 LOOP
                SELECT d.min_version, d.live INTO min_needed, is_live
                    FROM seachange.descriptor d WHERE d.id = numbers[k];
                IF NOT FOUND THEN
                    -- Published by this very commit, or gone for good.
                    CONTINUE WHEN EXISTS (SELECT 1 FROM jsonb_array_elements(my_changes->'descriptors') o
                        WHERE (o->>'id')::bigint = numbers[k]);
                    min_needed := 0;
                ELSIF numbers[k + 1] >= min_needed AND is_live THEN
                    CONTINUE;
                END IF;
                code := 3; a := numbers[k]; b := min_needed;
                EXIT;
            END LOOP;
        END IF;

        IF code IS NULL AND my_changes IS NOT NULL THEN
            detail := seachange.superseded(my_epoch, head, my_changes);
            IF detail IS NOT NULL THEN code := 6; END IF;
        END IF;

        IF code IS NULL THEN
            my_writes := numbers[start + 1 : cut[1]];
            my_shares := numbers[cut[1] + 1 : cut[2]];
            my_bulk := numbers[cut[2] + 1 : cut[3]];
            my_touched := numbers[cut[3] + 1 : cut[4]];
            IF head > validated THEN
                -- Without the upper bound a planner that has no statistics yet
                -- reads the whole log.
                needed := my_writes || my_shares;
                few := cardinality(needed) <= 16;
                SELECT min(l.seq) FILTER (WHERE few AND (l.writes && needed OR l.shares && my_writes)),
                    bool_or(l.bulk && my_touched OR l.touched && my_bulk)
                    INTO a, is_touched
                    FROM seachange.log l WHERE l.seq > validated AND l.seq <= head;
                IF NOT few THEN
                    a := seachange.conflict_of_many(validated, head, my_writes, needed);
                END IF;
                IF a IS NOT NULL THEN
                    code := 1;
                ELSIF is_touched THEN
                    code := 2; a := head;
                END IF;
            END IF;
        END IF;

        -- Another's lock stands against it: its node waits, and sends it again.
        IF code IS NULL AND has_locks THEN
            SELECT k.key, k.guard INTO a, b FROM seachange.lock k
                WHERE k.guard = ANY (my_writes) AND (k.epoch, k.actor) <> (my_epoch, positions[i * 4]) LIMIT 1;
            IF FOUND THEN code := 8; END IF;
        END IF;

        IF code IS NULL THEN
            head := head + 1;
            last_us := greatest(now_us, last_us + 1);
            INSERT INTO seachange.log VALUES
                (head, last_us, ids[i], my_writes, my_shares, my_bulk, my_touched, positions[i * 4 - 1]);
            IF batches > 0 THEN
                IF head >= partitions THEN
                    partitions := seachange.add_partitions(head + 1, span);
                END IF;
                FOR k IN 1 .. batches LOOP
                    INSERT INTO seachange.batch VALUES (head, k, numbers[cut[5] + k * 3 - 2],
                        numbers[cut[5] + k * 3 - 1], numbers[cut[5] + k * 3], payloads[payload_at + k]);
                END LOOP;
            END IF;
            IF my_changes IS NOT NULL THEN
                PERFORM seachange.publish_descriptors(head, my_changes);
                PERFORM seachange.publish_generations(head, my_changes);
            END IF;
            code := 0; a := head; b := last_us;
        END IF;
        RETURN NEXT;
        start := cut[6]; payload_at := payload_at + batches;
    END LOOP members;
END $$;

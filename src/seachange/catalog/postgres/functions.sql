-- The functions of a PostgreSQL catalog, as the newest format has them: made
-- anew by the migration to it. A function that goes, or takes other arguments,
-- is dropped by the migration that does away with it.
--
-- Everything that changes the log runs in a function that takes the sequencer
-- lock first and looks afterwards: in READ COMMITTED each statement of a
-- function sees what was committed before it.

CREATE OR REPLACE FUNCTION seachange.now_us() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
$$;

-- The key is the one that schema.py takes for migrations. A session whose
-- settings were lost (behind a pooler) must neither commit without looking
-- again nor answer before the commit is durable.
CREATE OR REPLACE FUNCTION seachange.lock_sequencer() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'the catalog needs READ COMMITTED transactions, this one is %',
            upper(current_setting('transaction_isolation')) USING ERRCODE = '42000',
            HINT = 'Connect to the catalog without a pooler that shares sessions, or set default_transaction_isolation '
                'to read committed for its database.';
    END IF;
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    PERFORM pg_advisory_xact_lock(5873429021876);
END $$;

CREATE OR REPLACE FUNCTION seachange.head() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT seq FROM seachange.log ORDER BY seq DESC LIMIT 1
$$;

-- Timestamps rise with the sequence, so no index over them is kept.
CREATE OR REPLACE FUNCTION seachange.sequence_at(at_us bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    low bigint;
    high bigint;
    middle bigint;
BEGIN
    SELECT min(seq) - 1, max(seq) INTO low, high FROM seachange.log;
    WHILE low < high LOOP
        middle := (low + high + 1) / 2;
        IF (SELECT l.timestamp_us <= at_us FROM seachange.log l WHERE l.seq = middle) THEN
            low := middle;
        ELSE
            high := middle - 1;
        END IF;
    END LOOP;
    RETURN greatest(low, 0);
END $$;

-- Partitions are attached, not created in place: that lock lets readers and
-- writers go on.
CREATE OR REPLACE FUNCTION seachange.add_partitions(upto bigint, span bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    lower_bound bigint;
    partition_name text;
BEGIN
    PERFORM seachange.lock_sequencer();
    SELECT s.partitioned INTO lower_bound FROM seachange.sequencer s;
    WHILE lower_bound < upto LOOP
        partition_name := 'batch_' || lower_bound;
        EXECUTE format('CREATE TABLE seachange.%I (LIKE seachange.batch INCLUDING ALL)', partition_name);
        EXECUTE format('ALTER TABLE seachange.batch ATTACH PARTITION seachange.%I FOR VALUES FROM (%s) TO (%s)',
            partition_name, lower_bound, lower_bound + span);
        INSERT INTO seachange.batch_partition VALUES (lower_bound, lower_bound + span);
        lower_bound := lower_bound + span;
    END LOOP;
    UPDATE seachange.sequencer SET partitioned = lower_bound WHERE partitioned < lower_bound;
    RETURN lower_bound;
END $$;

-- The reason why descriptors, raises, generations or segments cannot be
-- published, or null. What a commit has none of is not in `changes`, and not
-- looked for.
CREATE OR REPLACE FUNCTION seachange.superseded(my_epoch bigint, head bigint, changes jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    problem text;
BEGIN
    IF changes ? 'descriptors' THEN
        SELECT 'descriptor ' || c.id INTO problem
            FROM jsonb_to_recordset(changes->'descriptors') AS c(id bigint, expected bigint, version bigint)
            LEFT JOIN seachange.descriptor d ON d.id = c.id
            WHERE coalesce(d.version, 0) <> c.expected OR c.version <= c.expected LIMIT 1;
        IF FOUND THEN RETURN problem; END IF;
        SELECT 'name ' || c.name INTO problem
            FROM jsonb_to_recordset(changes->'descriptors') AS c(id bigint, name text, body text)
            WHERE c.body IS NOT NULL AND (
                EXISTS (SELECT 1 FROM seachange.descriptor d WHERE d.name = c.name AND d.live
                    AND d.id NOT IN (SELECT (o->>'id')::bigint FROM jsonb_array_elements(changes->'descriptors') o))
                OR EXISTS (SELECT 1 FROM jsonb_to_recordset(changes->'descriptors') AS o(id bigint, name text, body text)
                    WHERE o.name = c.name AND o.body IS NOT NULL AND o.id <> c.id)) LIMIT 1;
        IF FOUND THEN RETURN problem; END IF;
    END IF;
    IF changes ? 'raises' THEN
        SELECT 'descriptor ' || r.id INTO problem
            FROM jsonb_to_recordset(changes->'raises') AS r(id bigint)
            WHERE NOT EXISTS (SELECT 1 FROM seachange.descriptor d WHERE d.id = r.id)
                AND r.id NOT IN (SELECT (o->>'id')::bigint FROM jsonb_array_elements(changes->'descriptors') o) LIMIT 1;
        IF FOUND THEN RETURN problem; END IF;
    END IF;
    IF changes ? 'generations' THEN
        -- A base never goes back, and never promises what has not been committed.
        SELECT 'generation of index ' || c.index_id INTO problem
            FROM jsonb_to_recordset(changes->'generations') AS c(index_id bigint, expected bigint, base bigint)
            LEFT JOIN LATERAL (SELECT g.id, g.base FROM seachange.generation g WHERE g.index_id = c.index_id
                ORDER BY g.id DESC LIMIT 1) n ON true
            WHERE n.id IS DISTINCT FROM c.expected OR c.base < coalesce(n.base, 0) OR c.base > head LIMIT 1;
        IF FOUND THEN RETURN problem; END IF;
    END IF;
    IF changes ? 'jobs' THEN
        problem := seachange.job_problem(my_epoch, changes);
        IF problem IS NOT NULL THEN RETURN problem; END IF;
    END IF;
    IF changes ? 'segments' THEN
        -- A file that is to be attached must still be ours: garbage collection may
        -- have taken its intent.
        SELECT 'segment ' || s.id INTO problem
            FROM jsonb_to_recordset(changes->'segments') AS s(id bigint, delta boolean)
            WHERE NOT EXISTS (SELECT 1 FROM seachange.intent i WHERE i.segment_id = s.id AND i.epoch = my_epoch)
                AND NOT seachange.keeps(changes, s.id)
                AND (s.delta OR NOT EXISTS (SELECT 1 FROM seachange.segment o WHERE o.id = s.id)) LIMIT 1;
    END IF;
    RETURN problem;
END $$;

CREATE OR REPLACE FUNCTION seachange.publish_descriptors(my_seq bigint, changes jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO seachange.descriptor AS d
        SELECT c.id, c.version, c.name, c.body IS NOT NULL, CASE WHEN c.body IS NULL THEN c.version ELSE 0 END, my_seq
        FROM jsonb_to_recordset(changes->'descriptors') AS c(id bigint, version bigint, name text, body text)
        ON CONFLICT (id) DO UPDATE SET version = excluded.version, name = excluded.name, live = excluded.live,
            changed = excluded.changed, min_version = greatest(d.min_version, excluded.min_version);
    INSERT INTO seachange.descriptor_version
        SELECT c.id, c.version, my_seq, c.body, c.checksum
        FROM jsonb_to_recordset(changes->'descriptors')
            AS c(id bigint, version bigint, body text, checksum bigint);
    UPDATE seachange.index_owner o SET dropped = my_seq
        FROM jsonb_to_recordset(changes->'descriptors') AS c(id bigint)
        WHERE o.descriptor_id = c.id AND o.dropped IS NULL;
    INSERT INTO seachange.index_owner AS o (index_id, descriptor_id, public)
        SELECT (i->>0)::bigint, c.id, (i->>1)::boolean
        FROM jsonb_to_recordset(changes->'descriptors') AS c(id bigint, indexes jsonb),
            jsonb_array_elements(c.indexes) i
        ON CONFLICT (index_id) DO UPDATE SET dropped = NULL, public = o.public OR excluded.public;
    UPDATE seachange.descriptor d SET min_version = greatest(d.min_version, r.version)
        FROM jsonb_to_recordset(changes->'raises') AS r(id bigint, version bigint)
        WHERE d.id = r.id;
    -- Only these commits notify: a notification serialises every commit that sends one.
    PERFORM pg_notify('seachange_descriptors', my_seq::text);
END $$;

CREATE OR REPLACE FUNCTION seachange.publish_generations(my_seq bigint, changes jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    swap record;
    generation_id bigint;
BEGIN
    -- Intents and files that the job kept become references; a segment that is
    -- one already stays as it is.
    WITH taken AS (
        DELETE FROM seachange.intent i USING jsonb_to_recordset(changes->'segments') AS s(id bigint)
        WHERE i.segment_id = s.id RETURNING i.segment_id),
    kept AS (
        SELECT s.id AS segment_id FROM jsonb_to_recordset(changes->'segments') AS s(id bigint)
        WHERE seachange.keeps(changes, s.id))
    INSERT INTO seachange.segment
        SELECT s.id, s.index_id, s.layout_id, s.kind,
            CASE WHEN s.delta THEN my_seq ELSE coalesce(s.base, my_seq - 1) END,
            s.fresh, s.rows, s.size_bytes, decode(s.checksum, 'base64'), decode(s.key_min, 'base64'),
            decode(s.key_max, 'base64'), CASE WHEN s.delta THEN my_seq END
        FROM jsonb_to_recordset(changes->'segments') AS s(id bigint, index_id bigint, layout_id bigint,
            kind smallint, fresh boolean, rows bigint, size_bytes bigint, checksum text, key_min text, key_max text,
            delta boolean, base bigint)
        JOIN (SELECT segment_id FROM taken UNION SELECT segment_id FROM kept) t ON t.segment_id = s.id;
    FOR swap IN SELECT * FROM jsonb_to_recordset(changes->'generations')
            AS c(index_id bigint, base bigint, members jsonb) LOOP
        UPDATE seachange.sequencer SET next_generation = next_generation + 1
            RETURNING next_generation - 1 INTO generation_id;
        INSERT INTO seachange.generation
            VALUES (generation_id, swap.index_id, coalesce(swap.base, my_seq - 1), my_seq);
        INSERT INTO seachange.generation_member
            SELECT generation_id, m.ordinal, m.segment_id, decode(m.deleted, 'base64')
            FROM jsonb_to_recordset(swap.members) AS m(ordinal integer, segment_id bigint, deleted text);
    END LOOP;
END $$;

-- The oldest commit above `validated` that wrote or relied upon one of many keys:
-- comparing each with each would take too long.
CREATE OR REPLACE FUNCTION seachange.conflict_of_many(validated bigint, head bigint, my_writes bigint[], needed bigint[])
RETURNS bigint LANGUAGE sql AS $$
    SELECT min(k.seq) FROM (
        SELECT w.seq FROM (SELECT l.seq, unnest(l.writes) AS key FROM seachange.log l
            WHERE l.seq > validated AND l.seq <= head) w WHERE w.key IN (SELECT unnest(needed))
        UNION ALL
        SELECT s.seq FROM (SELECT l.seq, unnest(l.shares) AS key FROM seachange.log l
            WHERE l.seq > validated AND l.seq <= head) s WHERE s.key IN (SELECT unnest(my_writes))) k
$$;

-- Decides the members of a batch in order, each under its own sequence.
--
-- Per member, `positions` holds validated, oldest, parts and actor; `numbers` its
-- writes, shares, bulk, touched, versions (pairs), batches (index, layout, rows,
-- checksum or 0) and reads, one after the other; `ends` where each of the seven ends;
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
    PERFORM seachange.lock_sequencer();
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
        cut := ends[i * 7 - 6 : i * 7];
        validated := positions[i * 4 - 3];
        batches := (cut[6] - cut[5]) / 4;
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
                needed := my_writes || my_shares || numbers[cut[6] + 1 : cut[7]];
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
            IF FOUND THEN
                code := 8;
            ELSIF cut[7] > cut[6] THEN
                -- On the rows of a table, by a transaction that changes many.
                SELECT k.key, NULL INTO a, b FROM seachange.lock k
                    WHERE k.guard = ANY (numbers[cut[6] + 1 : cut[7]]) AND k.strength = 3
                        AND (k.epoch, k.actor) <> (my_epoch, positions[i * 4]) LIMIT 1;
                IF FOUND THEN code := 8; END IF;
            END IF;
        END IF;
        -- Jobs have no actor: what they publish changes no rows.
        IF code IS NULL AND has_locks AND positions[i * 4] <> 0 THEN
            SELECT k.key INTO a FROM seachange.lock k
                WHERE k.strength >= 11 AND (k.epoch, k.actor) <> (my_epoch, positions[i * 4])
                    AND k.guard IN (SELECT o.descriptor_id FROM seachange.index_owner o WHERE o.index_id = ANY (my_touched))
                LIMIT 1;
            IF FOUND THEN code := 9; END IF;
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
                    INSERT INTO seachange.batch VALUES (head, k, numbers[cut[5] + k * 4 - 3],
                        numbers[cut[5] + k * 4 - 2], numbers[cut[5] + k * 4 - 1], payloads[payload_at + k],
                        nullif(numbers[cut[5] + k * 4], 0));
                END LOOP;
            END IF;
            IF my_changes IS NOT NULL THEN
                IF my_changes ?| ARRAY['descriptors', 'raises'] THEN
                    PERFORM seachange.publish_descriptors(head, my_changes);
                END IF;
                IF my_changes ?| ARRAY['segments', 'generations'] THEN
                    PERFORM seachange.publish_generations(head, my_changes);
                END IF;
                IF my_changes ? 'jobs' THEN
                    PERFORM seachange.publish_jobs(my_epoch, head, last_us, my_changes);
                END IF;
                IF my_changes ? 'violations' THEN
                    INSERT INTO seachange.violation SELECT head, v.key, v.text, v.session
                        FROM jsonb_to_recordset(my_changes->'violations') AS v(key bigint, text text, session text);
                END IF;
                IF my_changes ? 'change' THEN
                    INSERT INTO seachange.change VALUES (head, last_us, my_changes->>'change');
                END IF;
                IF my_changes ? 'scopes' THEN
                    DELETE FROM seachange.lock k WHERE k.epoch = my_epoch AND k.actor = positions[i * 4]
                        AND k.scope IN (SELECT s::bigint FROM jsonb_array_elements_text(my_changes->'scopes') s);
                END IF;
            END IF;
            code := 0; a := head; b := last_us;
        END IF;
        RETURN NEXT;
        start := cut[7]; payload_at := payload_at + batches;
    END LOOP members;
END $$;

-- How a commit ended; an id that is not in the log is burned, which gives null.
CREATE OR REPLACE FUNCTION seachange.outcome(my_id bytea) RETURNS TABLE (seq bigint, timestamp_us bigint) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM seachange.lock_sequencer();
    RETURN QUERY SELECT l.seq, l.timestamp_us FROM seachange.log l WHERE l.commit_id = my_id;
    IF NOT FOUND THEN
        INSERT INTO seachange.burned VALUES (my_id, seachange.now_us()) ON CONFLICT DO NOTHING;
    END IF;
END $$;

-- NULL if the node does not know the rules that are agreed on.
CREATE OR REPLACE FUNCTION seachange.register_node(
    my_name text, my_expiry_ms bigint, my_format integer, my_release integer)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    my_epoch bigint;
BEGIN
    PERFORM seachange.lock_sequencer();
    IF my_release < (SELECT release FROM seachange.sequencer) THEN
        RETURN NULL;
    END IF;
    UPDATE seachange.sequencer SET next_epoch = next_epoch + 1 RETURNING next_epoch - 1 INTO my_epoch;
    INSERT INTO seachange.node (epoch, name, live, low_water, heartbeat_us, expiry_ms, format, write_mark,
            release)
        VALUES (my_epoch, my_name, true, seachange.head(), seachange.now_us(), my_expiry_ms, my_format,
            seachange.head(), my_release);
    RETURN my_epoch;
END $$;

CREATE OR REPLACE FUNCTION seachange.agree_release(my_release integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    agreed integer;
BEGIN
    PERFORM seachange.lock_sequencer();
    UPDATE seachange.sequencer s SET release = greatest(s.release,
        (SELECT least(my_release, min(n.release)) FROM seachange.node n WHERE n.live)) RETURNING s.release INTO agreed;
    RETURN agreed;
END $$;

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

CREATE OR REPLACE FUNCTION seachange.is_live(my_epoch bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT n.live FROM seachange.node n WHERE n.epoch = my_epoch), false)
$$;

-- The first of the reserved segment ids, null for an epoch that has ended.
CREATE OR REPLACE FUNCTION seachange.reserve_segments(my_epoch bigint, amount bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    first bigint;
BEGIN
    PERFORM seachange.lock_sequencer();
    IF NOT seachange.is_live(my_epoch) THEN RETURN NULL; END IF;
    UPDATE seachange.sequencer SET next_segment = next_segment + amount RETURNING next_segment - amount INTO first;
    INSERT INTO seachange.intent SELECT id, my_epoch FROM generate_series(first, first + amount - 1) id;
    RETURN first;
END $$;

-- Null for an epoch that has ended.
CREATE OR REPLACE FUNCTION seachange.claim(my_epoch bigint, my_resource text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM seachange.lock_sequencer();
    IF NOT seachange.is_live(my_epoch) THEN RETURN NULL; END IF;
    INSERT INTO seachange.claim AS c VALUES (my_resource, my_epoch)
        ON CONFLICT (resource) DO UPDATE SET epoch = my_epoch
        WHERE c.epoch = my_epoch OR NOT seachange.is_live(c.epoch);
    RETURN FOUND;
END $$;

-- The floor, null for an epoch that has ended; nothing is recorded if it is above the sequence.
CREATE OR REPLACE FUNCTION seachange.record_export(my_epoch bigint, my_table bigint, my_snapshot bigint, my_held bigint,
    my_metadata text, my_created_us bigint, my_expires_us bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    low bigint;
BEGIN
    PERFORM seachange.lock_sequencer();
    IF NOT seachange.is_live(my_epoch) THEN RETURN NULL; END IF;
    SELECT floor INTO low FROM seachange.sequencer;
    IF low <= my_held THEN
        INSERT INTO seachange.export VALUES (my_table, my_snapshot, my_held, my_metadata, my_created_us, my_expires_us)
            ON CONFLICT (table_id, snapshot) DO UPDATE SET held = my_held, metadata = my_metadata,
                created_us = my_created_us, expires_us = my_expires_us;
    END IF;
    RETURN low;
END $$;

-- False for an epoch that has ended: another node may have exported the snapshots again.
CREATE OR REPLACE FUNCTION seachange.forget_exports(my_epoch bigint, my_table bigint, my_snapshots bigint[])
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM seachange.lock_sequencer();
    IF NOT seachange.is_live(my_epoch) THEN RETURN false; END IF;
    DELETE FROM seachange.export WHERE table_id = my_table AND snapshot = ANY(my_snapshots);
    RETURN true;
END $$;

-- The floor if it is above the position of a new feed, 0 if there is one of that name, null if it was created.
CREATE OR REPLACE FUNCTION seachange.create_feed(my_database text, my_name text, my_owner text, my_tables text,
    my_position bigint, my_created_us bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    low bigint;
BEGIN
    PERFORM seachange.lock_sequencer();
    SELECT floor INTO low FROM seachange.sequencer;
    IF low > my_position THEN RETURN low; END IF;
    INSERT INTO seachange.feed VALUES (my_database, my_name, my_owner, my_tables, my_position, my_created_us, '')
        ON CONFLICT DO NOTHING;
    RETURN CASE WHEN FOUND THEN NULL ELSE 0 END;
END $$;

-- Raises the floor to the horizon and forgets what decides what readers see;
-- gives the new floor, null for an epoch that has ended. Of an index, the newest
-- generation swapped in at or below the floor, all later ones, and every delta
-- above its base stay; but of one that was never public, and that no open
-- transaction can know, nothing does.
CREATE OR REPLACE FUNCTION seachange.raise_floor(my_epoch bigint, retention_us bigint, burned_kept_us bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    low bigint;
    mark bigint;
BEGIN
    PERFORM seachange.lock_sequencer();
    IF NOT seachange.is_live(my_epoch) THEN RETURN NULL; END IF;
    SELECT min(low_water) INTO mark FROM seachange.node WHERE live;
    UPDATE seachange.sequencer SET floor = greatest(floor, least(
            mark,
            (SELECT min(held) FROM seachange.export WHERE expires_us > seachange.now_us()),
            (SELECT min(position) FROM seachange.feed WHERE ended = ''),
            seachange.sequence_at(seachange.now_us() - retention_us)))
        RETURNING floor INTO low;

    DELETE FROM seachange.generation g WHERE g.id < (SELECT max(n.id) FROM seachange.generation n
        WHERE n.index_id = g.index_id AND n.swap <= low);
    UPDATE seachange.segment s SET delta = NULL WHERE s.delta <= (SELECT max(n.base) FROM seachange.generation n
        WHERE n.index_id = s.index_id AND n.swap <= low);
    DELETE FROM seachange.generation g USING seachange.index_owner o
        WHERE o.index_id = g.index_id AND (o.dropped <= low OR (o.dropped <= mark AND NOT o.public));
    UPDATE seachange.segment s SET delta = NULL FROM seachange.index_owner o
        WHERE o.index_id = s.index_id AND (o.dropped <= low OR (o.dropped <= mark AND NOT o.public))
            AND s.delta IS NOT NULL;
    DELETE FROM seachange.generation_member m
        WHERE NOT EXISTS (SELECT 1 FROM seachange.generation g WHERE g.id = m.generation_id);
    WITH unreached AS (
        DELETE FROM seachange.segment s WHERE s.delta IS NULL
            AND NOT EXISTS (SELECT 1 FROM seachange.generation_member m WHERE m.segment_id = s.id)
        RETURNING s.id)
    INSERT INTO seachange.garbage SELECT id FROM unreached;

    -- What dead epochs leave behind. The lock is held, so none of them can
    -- still attach a file.
    WITH abandoned AS (
        DELETE FROM seachange.intent i WHERE NOT seachange.is_live(i.epoch) RETURNING i.segment_id)
    INSERT INTO seachange.garbage SELECT segment_id FROM abandoned;
    DELETE FROM seachange.claim c WHERE NOT seachange.is_live(c.epoch);
    DELETE FROM seachange.node n WHERE NOT n.live;

    -- A version that a newer one had replaced at the floor, and all of what
    -- was dropped by then.
    DELETE FROM seachange.descriptor_version v WHERE EXISTS (SELECT 1 FROM seachange.descriptor_version n
        WHERE n.id = v.id AND n.version > v.version AND n.seq <= low);
    DELETE FROM seachange.descriptor_version v WHERE v.body IS NULL AND v.seq <= low;
    DELETE FROM seachange.descriptor d WHERE NOT d.live AND d.changed <= low;
    DELETE FROM seachange.violation v WHERE v.seq <= low;
    DELETE FROM seachange.burned u
        WHERE u.timestamp_us < seachange.now_us() - greatest(retention_us, burned_kept_us);
    RETURN low;
END $$;

-- Whether no reader at or above the floor looks at a batch of these sequences.
CREATE OR REPLACE FUNCTION seachange.is_unread(first bigint, beyond bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT NOT EXISTS (
        SELECT 1 FROM seachange.batch b, seachange.sequencer s
        WHERE b.seq >= first AND b.seq < beyond
            AND NOT EXISTS (SELECT 1 FROM seachange.generation g
                WHERE g.index_id = b.index_id AND g.swap <= s.floor AND g.base >= b.seq)
            AND NOT EXISTS (SELECT 1 FROM seachange.index_owner o
                WHERE o.index_id = b.index_id AND o.dropped <= s.floor))
$$;

-- Whether two modes of locks conflict: a lock of rows by its strength, 1 to 4,
-- of jobs, 5 to 7, or of tables by its mode, 11 to 18. `conflict_mask` of model/locking.py says the same.
CREATE OR REPLACE FUNCTION seachange.conflicts(mine bigint, other bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT (CASE mine WHEN 1 THEN 16 WHEN 2 THEN 24 WHEN 3 THEN 28 WHEN 4 THEN 30
        WHEN 5 THEN 0 WHEN 6 THEN 0 WHEN 7 THEN 0
        WHEN 11 THEN 262144 WHEN 12 THEN 393216 WHEN 13 THEN 491520 WHEN 14 THEN 507904
        WHEN 15 THEN 483328 WHEN 16 THEN 516096 WHEN 17 THEN 520192 WHEN 18 THEN 522240 END >> other::integer) & 1 = 1
$$;

-- By other holders and, unless the actor has a part of the lock already, by
-- those who came first.
CREATE OR REPLACE FUNCTION seachange.is_blocked(my_epoch bigint, my_actor bigint, my_key bigint, my_strength bigint)
RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT 1 FROM seachange.lock l WHERE l.key = my_key AND seachange.conflicts(my_strength, l.strength)
            AND (l.epoch, l.actor) <> (my_epoch, my_actor))
        OR (EXISTS (SELECT 1 FROM seachange.lock_wait w WHERE w.key = my_key AND seachange.conflicts(my_strength, w.strength)
                AND (w.epoch, w.actor) <> (my_epoch, my_actor)
                AND w.turn < coalesce((SELECT m.turn FROM seachange.lock_wait m
                    WHERE m.epoch = my_epoch AND m.actor = my_actor AND m.key = my_key), 9223372036854775807))
            AND NOT EXISTS (SELECT 1 FROM seachange.lock o
                WHERE o.key = my_key AND o.epoch = my_epoch AND o.actor = my_actor))
$$;

-- Grants wishes, triples of key, strength and guard, in order, at most `most`.
-- `policy` is what to do about the first that is blocked: 0 waits for it, 1
-- gives up, 2 goes on to the next. `head` is null for an epoch that has ended.
CREATE OR REPLACE FUNCTION seachange.take_locks(
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

-- Enters the queue whatever is there, and tells other nodes; null for an epoch that has ended.
CREATE OR REPLACE FUNCTION seachange.request_lock(my_epoch bigint, my_actor bigint, my_key bigint, my_strength bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    number bigint;
BEGIN
    PERFORM seachange.lock_sequencer();
    IF NOT seachange.is_live(my_epoch) THEN RETURN NULL; END IF;
    DELETE FROM seachange.lock_wait w WHERE w.epoch = my_epoch AND w.actor = my_actor;
    INSERT INTO seachange.lock_wait (key, epoch, actor, strength) VALUES (my_key, my_epoch, my_actor, my_strength);
    UPDATE seachange.sequencer SET lock_requests = lock_requests + 1 RETURNING lock_requests INTO number;
    PERFORM pg_notify('seachange_descriptors', 'lock ' || number);
    RETURN number;
END $$;

-- `held` are locks that are there already, five numbers each: key, actor, scope, strength and guard.
CREATE OR REPLACE FUNCTION seachange.answer_requests(my_epoch bigint, upto bigint, held bigint[])
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM seachange.lock_sequencer();
    IF NOT seachange.is_live(my_epoch) THEN RETURN false; END IF;
    FOR i IN 1 .. cardinality(held) BY 5 LOOP
        INSERT INTO seachange.lock AS l VALUES (held[i], my_epoch, held[i + 1], held[i + 2], held[i + 3], held[i + 4])
            ON CONFLICT (key, epoch, actor, scope) DO UPDATE SET strength = excluded.strength, guard = excluded.guard
            WHERE excluded.strength > l.strength;
    END LOOP;
    UPDATE seachange.node SET answered = greatest(answered, upto) WHERE epoch = my_epoch;
    RETURN true;
END $$;

CREATE OR REPLACE FUNCTION seachange.forget_locks(my_epochs bigint[]) RETURNS void LANGUAGE sql AS $$
    DELETE FROM seachange.lock WHERE epoch = ANY (my_epochs);
    DELETE FROM seachange.lock_wait WHERE epoch = ANY (my_epochs);
$$;

-- Whether one of the jobs that a commit changes keeps a file.
CREATE OR REPLACE FUNCTION seachange.keeps(changes jsonb, my_segment bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT 1 FROM seachange.job_file f, jsonb_to_recordset(changes->'jobs') AS j(id bigint)
        WHERE f.segment_id = my_segment AND f.job_id = j.id)
$$;

-- What of the jobs stands against a commit: another revision, or a file that is not the job's to keep.
CREATE OR REPLACE FUNCTION seachange.job_problem(my_epoch bigint, changes jsonb) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    problem text;
BEGIN
    SELECT 'job ' || c.id INTO problem
        FROM jsonb_to_recordset(changes->'jobs') AS c(id bigint, expected bigint)
        LEFT JOIN seachange.job j ON j.id = c.id WHERE coalesce(j.revision, 0) <> c.expected LIMIT 1;
    IF FOUND THEN RETURN problem; END IF;
    SELECT 'segment ' || f INTO problem
        FROM jsonb_to_recordset(changes->'jobs') AS c(id bigint, files jsonb), jsonb_array_elements_text(c.files) f
        WHERE NOT EXISTS (SELECT 1 FROM seachange.job_file k WHERE k.segment_id = f::bigint AND k.job_id = c.id)
            AND NOT EXISTS (SELECT 1 FROM seachange.intent i WHERE i.segment_id = f::bigint AND i.epoch = my_epoch)
        LIMIT 1;
    RETURN problem;
END $$;

-- After the segments: a file that was attached is no longer the job's.
CREATE OR REPLACE FUNCTION seachange.publish_jobs(my_epoch bigint, my_seq bigint, now_us bigint, changes jsonb)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO seachange.job AS j
        SELECT c.id, c.expected + 1, c.status, '', ARRAY(SELECT d::bigint FROM jsonb_array_elements_text(c.descriptors) d),
            c.body, my_epoch, now_us, now_us, my_seq
        FROM jsonb_to_recordset(changes->'jobs')
            AS c(id bigint, expected bigint, status text, descriptors jsonb, body text)
        ON CONFLICT (id) DO UPDATE SET revision = excluded.revision, status = excluded.status,
            descriptors = excluded.descriptors, body = excluded.body, epoch = excluded.epoch,
            updated_us = excluded.updated_us, updated_seq = excluded.updated_seq;
    WITH gone AS (
        DELETE FROM seachange.job_file f USING jsonb_to_recordset(changes->'jobs') AS c(id bigint, files jsonb)
        WHERE f.job_id = c.id
            AND f.segment_id NOT IN (SELECT e::bigint FROM jsonb_array_elements_text(c.files) e)
        RETURNING f.segment_id)
    INSERT INTO seachange.garbage SELECT segment_id FROM gone
        WHERE segment_id NOT IN (SELECT s.id FROM jsonb_to_recordset(changes->'segments') AS s(id bigint));
    WITH named AS (
        SELECT c.id AS job_id, e::bigint AS segment_id
        FROM jsonb_to_recordset(changes->'jobs') AS c(id bigint, files jsonb), jsonb_array_elements_text(c.files) e),
    taken AS (
        DELETE FROM seachange.intent i USING named n WHERE i.segment_id = n.segment_id RETURNING i.segment_id)
    INSERT INTO seachange.job_file SELECT n.segment_id, n.job_id FROM named n ON CONFLICT DO NOTHING;
    INSERT INTO seachange.event (timestamp_us, job_id, seq, text)
        SELECT now_us, c.id, my_seq, c.event FROM jsonb_to_recordset(changes->'jobs') AS c(id bigint, event text)
        WHERE c.event <> '';
END $$;

-- What nodes call carries the planner's settings with it: those of a session
-- may be lost behind a pooler. Functions in SQL that are called by these are
-- left alone, since a function with settings cannot be inlined.
DO $$
DECLARE
    called regprocedure;
BEGIN
    FOR called IN
        SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
        WHERE p.pronamespace = 'seachange'::regnamespace AND l.lanname = 'plpgsql' AND p.proname <> 'lock_sequencer'
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET jit = off SET enable_seqscan = off '
            'SET plan_cache_mode = force_generic_plan SET search_path = pg_catalog, pg_temp', called);
    END LOOP;
END $$;

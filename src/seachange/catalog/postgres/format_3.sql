-- Jobs with the files that they keep, the history, and who may still write below a publication.

ALTER TABLE seachange.node ADD COLUMN write_mark bigint NOT NULL DEFAULT 0;
ALTER TABLE seachange.node ADD COLUMN holders text NOT NULL DEFAULT '[]';
ALTER TABLE seachange.sequencer ADD COLUMN next_job bigint NOT NULL DEFAULT 1;

CREATE TABLE seachange.job (
    id bigint PRIMARY KEY,
    revision bigint NOT NULL,
    status text NOT NULL,
    request text NOT NULL DEFAULT '',
    descriptors bigint[] NOT NULL,
    body text NOT NULL,
    epoch bigint NOT NULL,
    created_us bigint NOT NULL,
    updated_us bigint NOT NULL,
    updated_seq bigint NOT NULL
);
CREATE INDEX job_open ON seachange.job (id) WHERE status NOT IN ('succeeded', 'failed', 'canceled');

CREATE TABLE seachange.job_file (
    segment_id bigint PRIMARY KEY,
    job_id bigint NOT NULL
);
CREATE INDEX job_file_job ON seachange.job_file (job_id);

CREATE TABLE seachange.event (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    timestamp_us bigint NOT NULL,
    job_id bigint NOT NULL,
    seq bigint NOT NULL,
    text text NOT NULL
);
CREATE INDEX event_time ON seachange.event (timestamp_us);

CREATE OR REPLACE FUNCTION seachange.register_node(my_name text, my_expiry_ms bigint, my_format integer)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    my_epoch bigint;
BEGIN
    PERFORM seachange.lock_sequencer();
    UPDATE seachange.sequencer SET next_epoch = next_epoch + 1 RETURNING next_epoch - 1 INTO my_epoch;
    INSERT INTO seachange.node (epoch, name, live, low_water, heartbeat_us, expiry_ms, format, write_mark)
        VALUES (my_epoch, my_name, true, seachange.head(), seachange.now_us(), my_expiry_ms, my_format,
            seachange.head());
    RETURN my_epoch;
END $$;

-- Whether one of the jobs that a commit changes keeps a file.
CREATE FUNCTION seachange.keeps(changes jsonb, my_segment bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT 1 FROM seachange.job_file f, jsonb_to_recordset(changes->'jobs') AS j(id bigint)
        WHERE f.segment_id = my_segment AND f.job_id = j.id)
$$;

-- What of the jobs stands against a commit: another revision, or a file that is not the job's to keep.
CREATE FUNCTION seachange.job_problem(my_epoch bigint, changes jsonb) RETURNS text LANGUAGE plpgsql STABLE AS $$
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

CREATE OR REPLACE FUNCTION seachange.superseded(my_epoch bigint, head bigint, changes jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    problem text;
BEGIN
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
    SELECT 'descriptor ' || r.id INTO problem
        FROM jsonb_to_recordset(changes->'raises') AS r(id bigint)
        WHERE NOT EXISTS (SELECT 1 FROM seachange.descriptor d WHERE d.id = r.id)
            AND r.id NOT IN (SELECT (o->>'id')::bigint FROM jsonb_array_elements(changes->'descriptors') o) LIMIT 1;
    IF FOUND THEN RETURN problem; END IF;
    -- A base never goes back, and never promises what has not been committed.
    SELECT 'generation of index ' || c.index_id INTO problem
        FROM jsonb_to_recordset(changes->'generations') AS c(index_id bigint, expected bigint, base bigint)
        LEFT JOIN LATERAL (SELECT g.id, g.base FROM seachange.generation g WHERE g.index_id = c.index_id
            ORDER BY g.id DESC LIMIT 1) n ON true
        WHERE n.id IS DISTINCT FROM c.expected OR c.base < coalesce(n.base, 0) OR c.base > head LIMIT 1;
    IF FOUND THEN RETURN problem; END IF;
    problem := seachange.job_problem(my_epoch, changes);
    IF problem IS NOT NULL THEN RETURN problem; END IF;
    -- A file that is to be attached must still be ours: garbage collection may
    -- have taken its intent.
    SELECT 'segment ' || s.id INTO problem
        FROM jsonb_to_recordset(changes->'segments') AS s(id bigint, delta boolean)
        WHERE NOT EXISTS (SELECT 1 FROM seachange.intent i WHERE i.segment_id = s.id AND i.epoch = my_epoch)
            AND NOT seachange.keeps(changes, s.id)
            AND (s.delta OR NOT EXISTS (SELECT 1 FROM seachange.segment o WHERE o.id = s.id)) LIMIT 1;
    RETURN problem;
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

-- After the segments: a file that was attached is no longer the job's.
CREATE FUNCTION seachange.publish_jobs(my_epoch bigint, my_seq bigint, now_us bigint, changes jsonb)
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
                PERFORM seachange.publish_jobs(my_epoch, head, last_us, my_changes);
            END IF;
            code := 0; a := head; b := last_us;
        END IF;
        RETURN NEXT;
        start := cut[6]; payload_at := payload_at + batches;
    END LOOP members;
END $$;

-- Macros that combine DuckDB's functions and ours.

-- As concat and format show values.
seachange_shown(x) AS CASE WHEN typeof(x) = 'BOOLEAN' THEN left(CAST(x AS VARCHAR), 1) ELSE seachange_text(x) END;
seachange_without_null(l, n) AS list_transform(l, lambda item: nullif(item, n));
seachange_positions(l, v) AS list_filter(
    list_transform(l, lambda item, i: CASE WHEN item IS NOT DISTINCT FROM v THEN i END), lambda i: i IS NOT NULL);
seachange_replaced(l, v, w) AS list_transform(l, lambda item: CASE WHEN item IS NOT DISTINCT FROM v THEN w ELSE item
    END);
-- The same if an argument is a query, which DuckDB does not allow inside a lambda expression: it is a member of a struct.
seachange_positions_of_query(l, v) AS list_transform([{'l': l, 'v': v}], lambda p: seachange_positions(p.l, p.v))[1];
seachange_replaced_of_query(l, v, w) AS list_transform([{'l': l, 'v': v, 'w': w}],
    lambda p: seachange_replaced(p.l, p.v, p.w))[1];
seachange_removed_of_query(l, v) AS list_transform([{'l': l, 'v': v}], lambda p: seachange_removed(p.l, p.v))[1];
seachange_position_from_of_query(l, v, s) AS list_transform([{'l': l, 'v': v, 's': s}],
    lambda p: seachange_position_from(p.l, p.v, p.s))[1];
seachange_json_array(l) AS '[' || array_to_string(list_transform(l, lambda item: coalesce(item, 'null')), ', ') || ']';
seachange_period_end(s, e INTERVAL) AS s + e, (s, e) AS e;
-- OVERLAPS: a period includes its start but not its end, unless they are equal. One bound may be NULL.
seachange_overlapping(s, e, t, f) AS CASE
    WHEN least(s, e) > least(t, f) THEN CASE WHEN t IS NULL OR f IS NULL THEN NULL
        WHEN least(s, e) < greatest(t, f) THEN true WHEN s IS NULL OR e IS NULL THEN NULL ELSE false END
    WHEN least(s, e) < least(t, f) THEN CASE WHEN s IS NULL OR e IS NULL THEN NULL
        WHEN least(t, f) < greatest(s, e) THEN true WHEN t IS NULL OR f IS NULL THEN NULL ELSE false END
    WHEN s IS NOT NULL AND e IS NOT NULL AND t IS NOT NULL AND f IS NOT NULL THEN true END;
seachange_overlaps(s, e, t, f) AS seachange_overlapping(s, seachange_period_end(s, e), t, seachange_period_end(t, f));
-- Transposes a list of columns to a list of rows.
seachange_turned(columns) AS list_transform(generate_series(1, len(columns[1])), lambda i: list_transform(columns,
    lambda listed: listed[i]));
seachange_position_from(l, v, s) AS list_filter(generate_series(s, len(l)), lambda i: l[i] IS NOT DISTINCT FROM v)[1];
seachange_dimensions(l) AS CASE WHEN len(l) > 0 THEN '[1:' || len(l) || ']' END;
seachange_bucket(x, bounds) AS CAST(len(list_filter(bounds, lambda bound: bound <= x)) AS INTEGER);
-- 32 bits, unless it is a bigint.
seachange_hex(x) AS CASE WHEN typeof(x) = 'BIGINT' THEN lower(to_hex(x)) ELSE right(lower(to_hex(x)), 8) END;
seachange_subscripts(l, d) AS CAST(generate_series(1, CASE WHEN d = 1 THEN len(l) ELSE 0 END) AS INTEGER[]);
seachange_series(a, b, s) AS list_transform(generate_series(0, least(CAST(floor((b - a) / s) AS BIGINT), 8388608)),
    lambda i: a + i * s);
seachange_truncated(u, x DATE) AS date_trunc(u, CAST(x AS TIMESTAMP WITH TIME ZONE)), (u, x) AS date_trunc(u, x);
seachange_time(x TIMESTAMP WITH TIME ZONE) AS CAST(CAST(x AS TIMESTAMP) AS TIME), (x) AS CAST(x AS TIME);
seachange_joined(a, b) AS CASE WHEN a IS NOT NULL OR b IS NOT NULL THEN list_concat(a, b) END;
seachange_removed(l, v) AS list_filter(l, lambda item: item IS DISTINCT FROM v);
-- The arguments of VARIADIC.
seachange_texts(l) AS list_transform(l, lambda item: seachange_shown(item));
seachange_concatenated(s, l) AS CASE WHEN s IS NOT NULL AND l IS NOT NULL THEN
    coalesce(array_to_string(seachange_texts(l), s), '') END;
seachange_count_nulls(l) AS CAST(len(list_filter(l, lambda item: item IS NULL)) AS INTEGER);
seachange_count_values(l) AS CAST(len(list_filter(l, lambda item: item IS NOT NULL)) AS INTEGER);
-- Ordered by a random number for each item.
seachange_shuffled(l) AS list_transform(list_sort(list_transform(l, lambda item: {'drawn': random(), 'item':
    item})), lambda pair: pair.item);
-- The Box-Muller transform.
seachange_random_normal(m, s) AS m + s * sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random());
seachange_filled(v, n) AS list_transform(generate_series(1, CASE WHEN n > 8388608
    THEN error('a list exceeds the limit of 8388608 items') ELSE n END), lambda i: v);

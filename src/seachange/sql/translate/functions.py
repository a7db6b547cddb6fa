"""The functions that a user's SQL may call, by the names that sqlglot gives them: an allow-list.

DuckDB has functions that read files, settings and the environment; whatever is not named here is refused.
"""

from __future__ import annotations

from typing import Final

_OPERATORS: Final = """
    and or xor case if cast try_cast exists coalesce nullif greatest least collate extract overlay equal_null
"""
_AGGREGATES: Final = """
    any_value approx_distinct approx_quantile arg_max arg_min array_agg avg bitwise_and_agg bitwise_or_agg
    bitwise_xor_agg corr count count_if covar_pop covar_samp first group_concat grouping kurtosis last
    logical_and logical_or max median min mode percentile_cont percentile_disc quantile regr_avgx regr_avgy
    regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness stddev stddev_pop
    stddev_samp sum variance variance_pop bool_and bool_or string_agg
"""
_WINDOWS: Final = """
    cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number
"""
_NUMBERS: Final = """
    abs acos acosh asin asinh atan atan2 atanh cbrt ceil cos cosh cot degrees div exp factorial floor gcd lcm
    is_inf is_nan ln log log10 mod pi power radians rand round scale sign sin sinh sqrt tan tanh trunc bit_count
"""
_TEXT: Final = """
    ascii bit_length btrim byte_length chr concat concat_ws contains decode encode ends_with format hex initcap
    left length levenshtein lower lower_hex ltrim md5 normalize octet_length pad quote_ident quote_literal
    regexp_count regexp_extract regexp_full_match regexp_i_like regexp_instr regexp_like regexp_matches
    regexp_replace regexp_split regexp_substr repeat replace reverse right rtrim sha sha2 sha256 space
    split_part starts_with str_position string_to_array strpos substring to_base64 from_base64 to_hex translate
    trim unhex unicode upper char_length character_length
"""
_TIMES: Final = """
    age clock_timestamp current_date current_time current_timestamp date date_add date_bin date_part date_sub
    date_trunc datediff day day_of_month day_of_week day_of_year dayofweek_iso epoch epoch_ms epoch_us hour
    isfinite justify_days justify_hours justify_interval last_day localtime localtimestamp make_date now
    make_interval make_time make_timestamp make_timestamptz minute month quarter second statement_timestamp
    date_from_parts time_from_parts timestamp_from_parts timestamp_trunc time_to_str to_char str_to_date
    str_to_time to_date to_timestamp transaction_timestamp ts_or_ds_to_date unix_to_time week week_of_year year
    number_to_str to_number
"""
_LISTS: Final = """
    array array_append array_contains array_contains_all array_length array_position array_prepend
    array_remove array_size array_to_string cardinality explode exploding_generate_series generate_series
    row struct unnest all some
"""
_JSON: Final = """
    json_build_object jsonb_build_object json_object
    json_extract json_extract_scalar jsonb_extract jsonb_extract_scalar json_array_length json_typeof
    array_contained_by array_overlaps
"""
_MAPPED: Final = """
    array_concat array_fill array_lower array_ndims array_positions array_replace every j_s_o_n_array_agg
    json_build_array jsonb_agg jsonb_array_length jsonb_build_array jsonb_extract_path_text jsonb_typeof
    num_nonnulls num_nulls pg_to_char pg_to_date pg_to_timestamp regexp_match regexp_split_to_array to_json to_jsonb
    trim_array array_sample array_shuffle hashtext j_s_o_n_b_path_exists jsonb_path_exists jsonb_path_match
    jsonb_path_query_array jsonb_path_query_first jsonb_set_lax match_against pg_date_add pg_date_subtract
    pg_size_bytes random_normal timeofday to_ascii
"""
_BUILT: Final = """
    acosd array_dims asind atan2d atand convert_from convert_to cosd cotd erf erfc get_bit getbit parse_ident
    pg_to_number set_bit set_byte sind tand timezone unistr
    get_byte j_s_o_n_strip_nulls json_strip_nulls jsonb_insert jsonb_object jsonb_pretty pg_json_object row_to_json
    array_to_json json_extract_path json_extract_path_text jsonb_extract_path j_s_o_n_object_agg j_s_o_n_b_object_agg
    jsonb_pretty jsonb_set jsonb_strip_nulls min_scale s_h_a2_digest scale sha224 sha384
    sha512 trim_scale width_bucket
"""
# What gives several rows.
_SETS: Final = """
    json_array_elements json_array_elements_text json_each json_each_text json_object_keys
    jsonb_array_elements jsonb_array_elements_text jsonb_each jsonb_each_text jsonb_object_keys
    jsonb_path_query regexp_matches regexp_split_to_table string_to_table
"""
# The same, with columns that the alias declares.
_RECORDS: Final = "json_to_record json_to_recordset jsonb_to_record jsonb_to_recordset"
_NETWORKS: Final = """
    abbrev broadcast family host hostmask inet_merge inet_same_family masklen netmask network set_masklen text
"""
_OTHER: Final = """
    current_catalog current_database current_role current_schema current_user current_version session_user
    enum_first enum_last enum_range
    typeof pg_typeof uuid gen_random_uuid
"""

# Operators of jsonb, of which sqlglot makes functions, with names that it makes of those of its classes.
_JSON_OPERATORS: Final = """
    j_s_o_n_b_contains_any_top_keys j_s_o_n_b_contains_all_top_keys j_s_o_n_b_contains_top_key
    j_s_o_n_b_delete_at_path
"""

FUNCTIONS: Final[frozenset[str]] = frozenset(
    " ".join(
        (
            _JSON_OPERATORS,
            _OPERATORS,
            _AGGREGATES,
            _WINDOWS,
            _NUMBERS,
            _TEXT,
            _TIMES,
            _LISTS,
            _JSON,
            _MAPPED,
            _BUILT,
            _NETWORKS,
            _OTHER,
            _SETS,
            _RECORDS,
        )
    ).split()
)

# Those whose last arguments may be given as one list.
VARIADIC: Final = frozenset(
    [
        "concat",
        "concat_ws",
        "format",
        "json_build_array",
        "json_extract_path",
        "json_extract_path_text",
        "jsonb_build_array",
        "jsonb_extract_path",
        "jsonb_extract_path_text",
        "num_nonnulls",
        "num_nulls",
    ]
)

# Functions of sequences: the engine answers them, DuckDB's own of these names are never called.
SEQUENCE_FUNCTIONS: Final = frozenset({"nextval", "currval", "lastval", "setval"})

# Functions that exist in DuckDB and reach out of the query: refused by name, so that the answer says why.
REFUSED_PREFIXES: Final[tuple[str, ...]] = (
    "read_", "pragma_", "duckdb_", "parquet_", "sqlite_", "postgres_", "query", "glob", "getenv", "sniff_",
    "current_setting", "set_config", "getvariable", "arrow_scan", "pandas_scan", "python_", "seq_scan",
    "json_execute", "checkpoint", "force_checkpoint", "nextval", "currval", "pg_read", "pg_ls", "lo_",
    "copy_", "load_", "which_secret", "write_", "iceberg_", "delta_", "shell", "test_", "repeat_row",
)  # fmt: skip

# What may stand where a table stands.
TABLE_FUNCTIONS: Final = frozenset(
    (
        "generate_series",
        "exploding_generate_series",
        "generate_subscripts",
        "unnest",
        "explode",
        *_SETS.split(),
        *_RECORDS.split(),
    )
)

# The types that a cast may name, as sqlglot calls them.
_TYPES: Final = """
    array bigint boolean bpchar char date decimal double float inet int interval ipprefix json jsonb name smallint text
    time
    timestamp timestamptz uint uuid varbinary varchar
"""
TYPES: Final[frozenset[str]] = frozenset(_TYPES.split())

# Constructs beside functions and operators, by the names of sqlglot's classes.
_STRUCTURE: Final = """
    Alias AtTimeZone CTE ColumnDef Cube DataType DataTypeParam Distinct Except Fetch Filter From Group GroupingSets
    Having HavingMax JSON Identifier IgnoreNulls Intersect Interval IntervalSpan JSONPath JSONPathKey JSONPathRoot
    JSONPathSubscript Join Lateral Limit LimitOptions Offset Order Ordered Qualify RespectNulls Rollup Select Slice
    Star Subquery Table TableAlias TableSample Tuple Union Values Var Variadic Where Window WindowSpec With WithinGroup
"""
STRUCTURE: Final[frozenset[str]] = frozenset(_STRUCTURE.split())

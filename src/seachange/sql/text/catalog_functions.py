"""Names of the catalog functions, which checks and rewrites need before a call is compiled."""

from __future__ import annotations

from typing import Final

# Types whose values are object ids and are printed as names.
REGISTERED_TYPES: Final = frozenset({"regclass", "regtype", "regnamespace", "regrole"})

_NAMES: Final = """
    regclassin regclassout regtypein regtypeout regnamespacein regnamespaceout regrolein regroleout to_regclass
    to_regtype to_regnamespace to_regrole to_regclass_name to_regtype_name to_regnamespace_name to_regrole_name
    pg_get_indexdef pg_get_constraintdef pg_get_viewdef format_type pg_typeof
    obj_description col_description shobj_description pg_get_serial_sequence pg_get_userbyid pg_table_is_visible
    pg_type_is_visible pg_function_is_visible pg_opclass_is_visible pg_opfamily_is_visible pg_operator_is_visible
    pg_collation_is_visible pg_conversion_is_visible pg_statistics_obj_is_visible pg_ts_config_is_visible
    current_schemas current_setting set_config pg_backend_pid pg_is_in_recovery pg_encoding_to_char
    pg_char_to_encoding getdatabaseencoding pg_client_encoding inet_server_addr inet_server_port inet_client_addr
    inet_client_port pg_relation_size pg_table_size pg_total_relation_size pg_indexes_size pg_database_size
    pg_size_pretty pg_tablespace_location pg_relation_is_publishable pg_relation_filenode pg_get_triggerdef
    pg_get_ruledef pg_get_partkeydef pg_get_functiondef pg_get_function_result pg_get_function_arguments
    pg_get_function_identity_arguments pg_get_statisticsobjdef_columns has_table_privilege has_any_column_privilege
    has_schema_privilege has_database_privilege has_sequence_privilege has_type_privilege has_function_privilege
    has_column_privilege pg_has_role pg_get_expr _pg_expandarray generate_subscripts oidin array_upper
    quote_ident quote_literal quote_nullable pg_partition_ancestors pg_sleep
    pg_sequence_last_value pg_ts_dict_is_visible pg_ts_parser_is_visible pg_ts_template_is_visible
"""
CATALOG_FUNCTIONS: Final[frozenset[str]] = frozenset(_NAMES.split())

"""Loads of files and tables of other engines, by `CALL seachange.import_table`."""

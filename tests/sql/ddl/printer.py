"""DDL statement values as text."""

from tests.sql.ddl import printer_object, printer_table
from tests.sql.ddl.printing import show

__all__ = ["printer_object", "printer_table", "show"]

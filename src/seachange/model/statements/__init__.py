"""Statements as values, by name: a module for each family. `required_privileges` has the privileges of each."""

from __future__ import annotations

from seachange.model.statements.object_statements import *
from seachange.model.statements.session_statements import *
from seachange.model.statements.table_statements import *

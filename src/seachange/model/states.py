"""The states of a schema element."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    ABSENT = "ABSENT"
    DELETE_ONLY = "DELETE_ONLY"
    WRITE_ONLY = "WRITE_ONLY"
    ENFORCED = "ENFORCED"
    VALIDATING = "VALIDATING"
    PUBLIC = "PUBLIC"

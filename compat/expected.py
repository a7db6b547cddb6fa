"""Known failures of clients, with reasons: everything else is expected to work."""

from __future__ import annotations

# By client and feature.
KNOWN_FAILURES: dict[tuple[str, str], str] = {
    ("node-postgres", "values"): "a column of numerics without digits loses the zeros at their end",
}

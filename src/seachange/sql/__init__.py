"""Text in, DuckDB out: parsing, binding, queries, DML, fast paths."""

import warnings

# The compiled parts of sqlglot come in two packages, and the older one warns on import that it is retired. Whoever
# runs with warnings as errors must still be able to import us.
with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="sqlglotrs is deprecated", category=DeprecationWarning)
    import sqlglot  # noqa: F401

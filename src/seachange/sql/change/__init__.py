"""Schema changes and roles: planning, checks of expressions and privileges."""

"""The model checker: schema changes as the planner emits them, in all interleavings with transactions, in small."""

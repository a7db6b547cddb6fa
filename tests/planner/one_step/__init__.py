"""Statements taken to their end in one step, by other code than the planner: what its plans are compared with."""

"""A schema change as values: elements, targets, ops, and the work on rows."""

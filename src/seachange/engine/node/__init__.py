"""A node and its background threads."""

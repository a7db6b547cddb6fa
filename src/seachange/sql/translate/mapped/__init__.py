"""mapped."""

"""A Django application with models of its own."""

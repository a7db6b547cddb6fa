"""The data model: frozen values without side effects."""

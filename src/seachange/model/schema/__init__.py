"""Descriptors: the definition of tables and other objects at one version."""

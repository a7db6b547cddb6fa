"""Parsing of statements."""

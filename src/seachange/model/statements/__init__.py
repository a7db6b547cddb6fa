"""Statements as values, and the privileges that each requires."""

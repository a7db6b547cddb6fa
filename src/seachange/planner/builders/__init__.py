"""Statements to targets, one family of statements to a module."""

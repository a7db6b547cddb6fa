"""Replaying a history of migrations while others write: folders, statements, made-up writers, and the report."""

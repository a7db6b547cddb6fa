"""Replay of a history of migrations under concurrent writes: folders, statements, generated writers, and the report."""

"""Execution of any statement: run, describe, explain."""

"""Verification: the consistency checker of real data, and the model checker of the schema change protocol."""

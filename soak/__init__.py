"""The soak: processes on one database under load, schema changes and faults.

A checker that shares no code with the engine judges what they recorded.
"""

"""The checker: pure functions over a recorded history.

**Invariant:** nothing here imports the engine, so a defect of the engine cannot hide itself.
"""

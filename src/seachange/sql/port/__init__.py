"""What SQL needs of the engine (`port.py`), and what it answers with."""

"""The commit log, descriptors, nodes and intents, in SQLite or PostgreSQL, behind one narrow interface."""

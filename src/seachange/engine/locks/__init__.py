"""Key, table and advisory locks, within a node and between nodes; deadlocks."""

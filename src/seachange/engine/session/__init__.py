"""Sessions: the statement loop, blocks, savepoints, cursors, DDL queue."""

"""Sessions and transactions; wires catalog, storage and SQL together; the Python API."""

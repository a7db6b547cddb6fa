"""A data set in the shape of TPC-H's, its tables and its 22 queries: a generator of our own, not the official one."""

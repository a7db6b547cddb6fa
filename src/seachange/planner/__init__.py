"""What a DDL statement means for the descriptors, without touching anything: no I/O, no clock."""

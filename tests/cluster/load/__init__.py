"""Several processes that write to one database and change it at the same time, from one seed."""

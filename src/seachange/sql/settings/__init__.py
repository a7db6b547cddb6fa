"""Settings: the table of all, their value checks, and those of a session, role or database."""

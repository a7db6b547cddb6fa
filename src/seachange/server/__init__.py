"""PostgreSQL's protocol: the database for everything that speaks it."""

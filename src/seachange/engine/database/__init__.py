"""Opening, identifying and backing up a database."""

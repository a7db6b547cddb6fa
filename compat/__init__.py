"""The clients of PostgreSQL against `seachange serve`: what each of them can do."""

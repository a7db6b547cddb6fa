"""What the data source of Spark asks of a database: tables in units, rows from files, changes as rows."""

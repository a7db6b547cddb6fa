"""Tables as Spark DataFrames, and DataFrames into tables."""

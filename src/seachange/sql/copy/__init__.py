"""COPY, and Arrow data and DataFrames into tables."""

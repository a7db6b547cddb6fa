"""COPY, and loading of Arrow data and DataFrames."""

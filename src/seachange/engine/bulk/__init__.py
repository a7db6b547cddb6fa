"""Inserts, updates and deletes of any number of rows in bounded memory."""

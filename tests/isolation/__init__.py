"""Isolation: what transactions that run at the same time may see of each other."""

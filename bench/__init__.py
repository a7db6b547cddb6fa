"""Measures Seachange side by side with its peers: `python -m bench`."""

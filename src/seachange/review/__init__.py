"""Judges migrations before they are run: what each statement costs, what it loses, and what is refused."""

"""Throttling of background work, and progress."""

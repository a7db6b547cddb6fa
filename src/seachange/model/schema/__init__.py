"""Descriptors: what tables and other objects look like at one version."""

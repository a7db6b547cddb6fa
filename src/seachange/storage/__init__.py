"""Segments, generations, snapshots, and projections between layouts."""

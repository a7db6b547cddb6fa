"""JSON forms of descriptors, layouts, changes and jobs."""

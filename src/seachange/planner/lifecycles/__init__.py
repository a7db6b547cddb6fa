"""The ways of elements from absent to public and back, as tables."""

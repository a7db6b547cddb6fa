"""An application of Django's with models of its own."""

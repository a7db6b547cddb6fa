"""The web console: pages for a browser, served by any node."""

"""One program per client. Each is given the URL of a server and prints a line of JSON for every feature."""

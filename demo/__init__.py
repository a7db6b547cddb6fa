"""The demonstration: a table of a million rows changes shape, eight times, while two processes read and write it."""

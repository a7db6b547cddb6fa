"""The outside world as ports: clock, randomness, file system, processes, named fault points."""

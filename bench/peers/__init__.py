"""The peers, each a process in an environment of its own; standard library only at this level."""

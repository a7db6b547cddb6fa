"""How long tests wait for what must happen: a test waits for facts, and only a hang takes longer than this.

On a machine with forty times as many busy processes as processors all takes forty times as long. The limit of a test as
a whole (`timeout` in pyproject.toml) is longer still, so that a wait that fails says what it waited for.
"""

PATIENCE_S = 600.0

"""What the server of forks loads last: forks begin with what it leaves them."""

import gc
from importlib import import_module

# PyArrow loads it with the first array that it makes of Python values.
import_module("pandas")

# Else the first collection of every fork touches, and so copies, all that the server has imported.
gc.collect()
gc.freeze()

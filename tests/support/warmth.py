"""What the server of forks loads last: forks begin with what it leaves them."""

from importlib import import_module

from seachange.runtime.garbage import freeze_loaded

# PyArrow loads it with the first array that it makes of Python values.
import_module("pandas")

# Else the first collection of every fork touches, and so copies, all that the server has imported.
freeze_loaded()

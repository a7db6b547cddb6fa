"""How many examples a property is shown with."""

from hypothesis import settings

# The examples of every run are the same: more of them show the same again, and new ones are for those who ask.
_FACTOR = {"repeatable": 0.4, "exploring": 10}


def examples(count: int) -> int:
    """About so many: fewer in an ordinary run, ten times as many where new ones are drawn (`--exhaustive`)."""
    return max(1, round(count * _FACTOR.get(settings.get_current_profile_name(), 1)))

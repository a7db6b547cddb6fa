"""How many examples a property is shown with."""

from hypothesis import settings

_FACTOR = {"exploring": 10}


def examples(count: int) -> int:
    """So many, and ten times as many where new ones are drawn at every run (`--exhaustive`)."""
    return count * _FACTOR.get(settings.get_current_profile_name(), 1)

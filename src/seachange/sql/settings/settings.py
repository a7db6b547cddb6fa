"""Session and node settings: a table of ours, and one of PostgreSQL's that have a fixed value here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files

from seachange import errors
from seachange.model.search_path import DEFAULT_PATH
from seachange.sql.settings import setting_checks as checks
from seachange.values.timezone import UTC, check_zone


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    default: str
    check: Callable[[str], str]
    description: str
    # A setting of the node: read when the database is opened, not changed by SET.
    of_node: bool = False
    # Affects other sessions or the machine: only superusers may set it.
    for_superusers: bool = False


READ_ONLY = "default_transaction_read_only"


def _lines(file: str) -> Iterator[list[str]]:
    """The fields of each line but the first, which names them."""
    for line in files("seachange.sql.settings").joinpath(file).read_text().splitlines()[1:]:
        yield [field.strip() for field in line.split("|")]


def _read(name: str, default: str, check: str, set_by: str, description: str) -> Setting:
    checked = getattr(checks, f"check_{check}")
    return Setting(name, default, checked, description, of_node=set_by == "node", for_superusers=set_by == "superuser")


_PATH_ABOUT = "The schemas that are searched for unqualified names, in order."
_ZONE_ABOUT = "The time zone of the session: a name, or an offset in hours east of UTC."
SETTINGS: dict[str, Setting] = {
    **{fields[0]: _read(*fields) for fields in _lines("settings.txt")},
    "search_path": Setting("search_path", DEFAULT_PATH, checks.check_path, _PATH_ABOUT),
    "timezone": Setting("timezone", UTC, check_zone, _ZONE_ABOUT),
}

PUBLISH = "seachange.publish"
PIPELINE_SETTINGS = tuple(
    name for name in SETTINGS if name.startswith(("seachange.local_rows", "seachange.pipeline_", "seachange.spark."))
)

# Settings of PostgreSQL that clients read, and set to the value that they have. Nothing here depends on them.
FIXED: dict[str, str] = {name: value for name, value, _ in _lines("fixed_settings.txt")}
# Other spellings of these values.
SPELLINGS = {"datestyle": ("iso, mdy", "iso", "iso,mdy", "mdy"), "standard_conforming_strings": ("on", "true", "1")}
# Those of them that may be set to any value, which is ignored: they concern PostgreSQL's planner or its display.
IGNORED_SETTINGS = frozenset(name for name, _, ignored in _lines("fixed_settings.txt") if ignored)


def is_of_node(name: str) -> bool:
    return name not in FIXED and find_setting(name).of_node


def is_free(name: str) -> bool:
    """Whether any role may set it."""
    return name in FIXED or not find_setting(name).for_superusers


def check_privilege(name: str, superuser: bool) -> None:
    if not superuser and not is_free(name):
        raise errors.InsufficientPrivilege(detail=f'permission denied to set parameter "{name}"')


def find_setting(name: str) -> Setting:
    setting = SETTINGS.get(name)
    if setting is None:
        raise errors.UndefinedObject(kind="configuration parameter", name=name)
    return setting

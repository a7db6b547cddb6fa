"""A change as the text that a job keeps."""

from __future__ import annotations

from typing import get_args

from seachange.model import elements
from seachange.model.codec import Codec
from seachange.model.constraint import Action
from seachange.model.expression import Expression
from seachange.model.object_kind import ObjectKind
from seachange.model.targets import Goal, Status, Target
from seachange.model.types import Kind, SqlType
from seachange.planner.graph import Skip
from seachange.planner.plan import Change, Sequel
from seachange.planner.stages import Phase, Progress

CHANGE_CLASSES: tuple[type, ...] = (
    *get_args(elements.Element),
    Action,
    Change,
    Expression,
    Goal,
    Kind,
    ObjectKind,
    Phase,
    Progress,
    Sequel,
    Skip,
    SqlType,
    Status,
    Target,
)

CHANGE_CODEC = Codec(*CHANGE_CLASSES)

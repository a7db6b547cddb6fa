"""A change as the text that a job keeps."""

from __future__ import annotations

from typing import get_args

from seachange.model.change import elements
from seachange.model.change.targets import Goal, Status, Target
from seachange.model.codecs.codec import Codec
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.constraint import Action
from seachange.model.schema.expression import Expression
from seachange.planner.graph import Skip
from seachange.planner.plan import Change, Sequel
from seachange.planner.stages import Phase, Progress
from seachange.values.types import Kind, SqlType

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

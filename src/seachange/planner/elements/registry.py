"""The tables by kind of element, derived from the topics."""

from __future__ import annotations

from typing import Any

from seachange.model.change.elements import Element, NamespaceElement
from seachange.model.schema.objects import Descriptor
from seachange.planner.elements.column import COLUMN
from seachange.planner.elements.constraint import CONSTRAINT
from seachange.planner.elements.enum_type import ENUM_TYPE
from seachange.planner.elements.index import INDEX
from seachange.planner.elements.object import OBJECT
from seachange.planner.elements.rule import Kinds, Rule
from seachange.planner.elements.schema import SCHEMA
from seachange.planner.elements.sequence import SEQUENCE
from seachange.planner.elements.spec import ElementSpec, Host, Topic
from seachange.planner.elements.table import TABLE
from seachange.planner.elements.view import VIEW
from seachange.planner.lifecycles.lifecycle import Lifecycle

TOPICS: tuple[Topic, ...] = (TABLE, OBJECT, SCHEMA, SEQUENCE, ENUM_TYPE, VIEW, COLUMN, INDEX, CONSTRAINT)

SPECS: dict[type[Element], ElementSpec] = {spec.kind: spec for topic in TOPICS for spec in topic.specs}
LIFECYCLES: dict[type[Element], Lifecycle] = {kind: spec.lifecycle for kind, spec in SPECS.items()}
RULES: tuple[Rule, ...] = tuple(rule for topic in TOPICS for rule in topic.rules)

# What is hidden as long as its host is, and the hosts.
HOSTS: tuple[Host, ...] = tuple(dict.fromkeys(spec.host for spec in SPECS.values() if spec.host is not None))
HOSTED: Kinds = tuple(kind for kind, spec in SPECS.items() if spec.host is not None)

# The descriptors that objects are kept in.
FORMS: dict[type[Descriptor], ElementSpec] = {
    spec.form.descriptor: spec for spec in SPECS.values() if spec.form is not None
}


def _turn(spec: ElementSpec) -> tuple[bool, bool]:
    """An object goes last, and its name before it."""
    return spec.form is not None, spec.kind is NamespaceElement


# The order in which the parts of an object are dropped.
DROP_ORDER: Kinds = tuple(spec.kind for spec in sorted(SPECS.values(), key=_turn))
COLUMN_SETTINGS: dict[str, type[Any]] = {spec.setting: spec.kind for spec in SPECS.values() if spec.setting is not None}
COLUMN_DROP_ORDER: Kinds = tuple(kind for kind in DROP_ORDER if SPECS[kind].in_column is not None)
TABLE_DROP_ORDER: Kinds = tuple(
    kind for kind in DROP_ORDER if SPECS[kind].known_outside or SPECS[kind].refers is not None
)

"""The current state of the demonstration: the director updates it, a view shows it."""

from __future__ import annotations

from dataclasses import dataclass, field

from demo.story import Step
from demo.timeline import Timeline
from demo.watch import JobState, Lease


@dataclass
class Act:
    """A step, and its progress."""

    step: Step
    began: float | None = None
    ended: float | None = None
    job: JobState | None = None
    # What came of it, in a line.
    outcome: str = ""
    is_good: bool = True


@dataclass
class Scene:
    title: str
    acts: list[Act]
    timeline: Timeline = field(default_factory=Timeline)
    leases: list[Lease] = field(default_factory=list)
    # How many versions of one table were seen in use at once, at most.
    versions_at_once: int = 1
    news: list[str] = field(default_factory=list)
    # The names of nodes, as they are called here.
    names: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def process_of(node: str) -> str:
        return node.rpartition("-")[2]

    def name_of(self, node: str) -> str:
        return self.names.get(self.process_of(node), node)

    def note_leases(self, leases: list[Lease]) -> None:
        self.leases = leases
        tables = {lease.table for lease in leases}
        for table in tables:
            versions = {lease.version for lease in leases if lease.table == table}
            self.versions_at_once = max(self.versions_at_once, len(versions))

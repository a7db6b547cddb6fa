"""What indexes will take, looked up once for each backfill of a plan, however often the plan is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from seachange.model.change.ops import BackfillIndexes
from seachange.model.ids import IndexId
from seachange.model.schema.descriptor import Table
from seachange.sql.port.port import EstimatePort


@dataclass(frozen=True, slots=True)
class BuildSamples:
    """`BuildSampler`."""

    estimates: EstimatePort
    _known: dict[BackfillIndexes, tuple[Table, Mapping[IndexId, int]]] = field(default_factory=dict)

    def entry_bytes(self, table: Table, op: BackfillIndexes) -> Mapping[IndexId, int]:
        known = self._known.get(op)
        if known is None or known[0] != table:
            self._known[op] = known = (table, self.estimates.entry_bytes(table, op))
        return known[1]

"""Compaction of an index concurrently with its change, and garbage collection of what it supersedes.

It reads the index at the head, and later swaps in what it has read if the newest generation is still the one that it
saw. The superseded generation stays for those who began before the swap; once there are none it is dropped with the
canonical form of a state.
"""

from __future__ import annotations

from typing import Any

from seachange.verify.model.entries import NONE, Entries
from seachange.verify.model.explore import Label, State
from seachange.verify.model.row_state import CELLS, FOLDING, GENERATIONS, HEAD, OPEN, VERSION, Canon
from seachange.verify.model.shape import IndexKind, ModelShape
from seachange.verify.model.switches import Switch, Switches


class Compaction:
    def __init__(self, shape: ModelShape, entries: Entries, canon: Canon, switches: Switches) -> None:
        self._kinds, self._views = shape.kinds, shape.views * 2
        self._entries, self._canon, self._switches = entries, canon, switches

    def step(self, state: State, out: list[tuple[Label, State]]) -> None:
        cells, generations, version, compaction, head = (
            state[CELLS],
            state[GENERATIONS],
            state[VERSION],
            state[FOLDING],
            state[HEAD],
        )
        if not compaction:
            for number in self._views[version].writes:
                held = generations[number]
                if self._kinds[number] <= IndexKind.PRIMARY_BY_VALUE:
                    continue
                if (held or Switch.COMPACT_WITHOUT_BASE in self._switches) and any(cells[number]):
                    base = held[-1][0] if held else NONE
                    if base < head:
                        out.append((("fold", number), self._canon.changed(state, {FOLDING: (number, head, base)})))
        else:
            number, folded, base = compaction
            held = generations[number]
            if (held[-1][0] if held else NONE) == base:
                content = self._entries.read(cells[number], held, folded, by_base=True)
                swapped = (*held, (folded, head + 1, content))
                changes: dict[int, Any] = {
                    GENERATIONS: (*generations[:number], swapped, *generations[number + 1 :]),
                    FOLDING: (),
                    HEAD: head + 1,
                }
                out.append((("swap", number), self._canon.changed(state, changes)))
            else:
                out.append((("not swapped", number), self._canon.changed(state, {FOLDING: ()})))
        if Switch.GC_BY_FOLD in self._switches:
            for number, held in enumerate(generations):
                if len(held) > 1 and all(t[0] >= held[-1][0] for t in state[OPEN]):
                    kept = (*generations[:number], held[-1:], *generations[number + 1 :])
                    out.append((("forget", number), self._canon.changed(state, {GENERATIONS: kept})))

"""The final check: whether every row and constraint is as expected, and the counts."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from demo.place import Place
from demo.processes import seachange_command
from demo.scene import Scene
from demo.story import BALANCE, Scale
from demo.timeline import quantile
from demo.watch import Watch


@dataclass(frozen=True)
class Finding:
    text: str
    is_good: bool


@dataclass(frozen=True)
class Verdict:
    findings: tuple[Finding, ...]

    @property
    def is_good(self) -> bool:
        return all(finding.is_good for finding in self.findings)


def judge(place: Place, watch: Watch, scene: Scene, scale: Scale) -> Verdict:
    timeline = scene.timeline
    transfers = sum(sample.kind == "transfer" and sample.error is None for sample in timeline.samples)
    ((money,),) = watch.ask("select sum(balance) from accounts")
    ((moved,),) = watch.ask("select count(*) from ledger where amount > 0")
    ((strange,),) = watch.ask("select count(*) from accounts where currency <> 'EUR' or opened is null")
    command = seachange_command("check", *place.options("check"), *(["--full"] if place.catalog is not None else []))
    check = subprocess.run(command, capture_output=True, text=True, check=False)
    told = (check.stdout or check.stderr).strip().splitlines()
    latencies = [sample.ms for sample in timeline.samples]
    expected = scale.accounts * BALANCE
    undone = [act.step.title for act in scene.acts if act.ended is None or not act.is_good]
    return Verdict(
        (
            Finding(f"{len(scene.acts)} changes, as they should{_of(undone)}", not undone),
            Finding(
                f"{len(latencies):,} transactions, p50 {quantile(latencies, 50):.1f} ms, p99"
                f" {quantile(latencies, 99):.1f} ms; {len(timeline.retried)} were run again after they met another",
                bool(latencies),
            ),
            Finding(
                f"{len(timeline.failed)} aborted by schema changes{_of([str(s.error) for s in timeline.failed[:3]])}",
                not timeline.failed,
            ),
            Finding(
                f"{scene.versions_at_once} versions of a table in use at once, at most", scene.versions_at_once <= 2
            ),
            Finding(f"the sum of all balances is {money:,} of {expected:,}", money == expected),
            Finding(f"the ledger has {moved:,} lines for {transfers:,} transfers", moved == transfers),
            Finding(f"{strange} rows without the new column or date", strange == 0),
            Finding(f"seachange check: {told[-1] if told else 'silent'}", check.returncode == 0),
        )
    )


def _of(names: list[str]) -> str:
    return f", but for: {'; '.join(names)}" if names else ""

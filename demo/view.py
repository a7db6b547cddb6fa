"""The view: live in a terminal, a plain log elsewhere."""

from __future__ import annotations

import datetime as dt
import sys
import threading
import time
from types import TracebackType
from typing import Final, Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from demo.scene import Act, Scene
from demo.timeline import sparkline

_SPARK_WIDTH: Final = 60
_REFRESHES_PER_SECOND: Final = 4
_LOG_EVERY_S: Final = 5.0


class View(Protocol):
    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def say(self, text: str) -> None:
        """A line that stays on the screen."""


def open_view(scene: Scene) -> View:
    return LiveView(scene) if sys.stdout.isatty() else LogView(scene)


class LiveView:
    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._live = Live(
            get_renderable=lambda: render(scene), refresh_per_second=_REFRESHES_PER_SECOND, console=Console()
        )

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def say(self, text: str) -> None:
        self._scene.news.append(text)


class LogView:
    """Lines with the time since the start; one line about the traffic every few seconds."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._began = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._report, daemon=True)

    def __enter__(self) -> Self:
        self.say(self._scene.title)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:6.1f} s  {text}", flush=True)

    def _report(self) -> None:
        told = 0
        while not self._over.wait(_LOG_EVERY_S):
            seconds = self._scene.timeline.seconds()[:-1]
            # After its end there is nothing new to say of it.
            if len(seconds) > told:
                told = len(seconds)
                shown = seconds[-int(_LOG_EVERY_S) :]
                rate = sum(second.done for second in shown) / len(shown)
                worst = max(second.p99_ms for second in shown)
                failed = len(self._scene.timeline.failed)
                self.say(f"    traffic: {rate:.0f} transactions/s, p99 {worst:.0f} ms, {failed} failed")
            for act in self._scene.acts:
                if act.began is not None and act.ended is None and act.job is not None:
                    self.say(f"    {describe_job(act)}")


def render(scene: Scene) -> Group:
    return Group(
        Panel(_render_acts(scene.acts), title=scene.title, title_align="left"),
        Panel(_render_traffic(scene), title="what the two processes see", title_align="left"),
        Panel(_render_versions(scene), title="who holds which version", title_align="left"),
        *(Text(line) for line in scene.news[-3:]),
    )


def _render_acts(acts: list[Act]) -> Table:
    table = Table.grid(padding=(0, 1), expand=True)
    for width in (1, 32, 9):
        table.add_column(width=width)
    table.add_column(ratio=1)
    for act in acts:
        if act.began is None:
            table.add_row(
                "·", Text(act.step.title, style="dim"), "", Text(act.step.statement, style="dim", no_wrap=True)
            )
        elif act.ended is None:
            table.add_row("▶", Text(act.step.title, style="bold"), _seconds(act), _render_job(act))
        else:
            sign = Text("✓", style="green") if act.is_good else Text("✗", style="red")
            table.add_row(sign, act.step.title, _seconds(act), Text(act.outcome, no_wrap=True))
    return table


def _render_job(act: Act) -> Table | Text:
    if act.job is None:
        return Text(act.step.statement, no_wrap=True)
    table = Table.grid(padding=(0, 1))
    table.add_row(ProgressBar(total=1.0, completed=act.job.progress, width=24), describe_job(act))
    return table


def describe_job(act: Act) -> str:
    job = act.job
    assert job is not None
    parts = [job.stage or job.status, f"{job.progress:.0%}"]
    if job.rows_total:
        parts.append(f"{job.rows_done:,} of {job.rows_total:,} rows")
    if job.eta is not None:
        left_s = (job.eta - dt.datetime.now(dt.UTC)).total_seconds()
        parts.append(f"{max(0.0, left_s):.0f} s left")
    if job.waiting_for:
        parts.append(f"waits for {job.waiting_for}")
    return ", ".join(parts)


def _seconds(act: Act) -> str:
    assert act.began is not None
    passed = (act.ended or time.monotonic()) - act.began
    return f"{passed * 1e3:.0f} ms" if act.ended and passed < 1 else f"{passed:.1f} s"


def _render_traffic(scene: Scene) -> Table:
    # The current second is not over.
    seconds = scene.timeline.seconds()[:-1]
    done = [float(second.done) for second in seconds]
    p99 = [second.p99_ms for second in seconds]
    table = Table.grid(padding=(0, 2))
    table.add_row("transactions/s", f"{done[-1] if done else 0:.0f}", sparkline(done, _SPARK_WIDTH))
    table.add_row("p99, ms", f"{p99[-1] if p99 else 0:.0f}", sparkline(p99, _SPARK_WIDTH))
    total, failed = len(scene.timeline.samples), len(scene.timeline.failed)
    table.add_row("transactions", f"{total:,}", Text(f"{failed} failed", style="red" if failed else "green"))
    return table


def _render_versions(scene: Scene) -> Table:
    table = Table.grid(padding=(0, 2))
    for lease in scene.leases:
        style = "" if lease.version == lease.newest else "yellow"
        table.add_row(
            scene.name_of(lease.node), lease.table, Text(f"version {lease.version} of {lease.newest}", style=style)
        )
    return table

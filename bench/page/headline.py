"""The comparison of the changes: the tables of the page and the short one of the README."""

from collections.abc import Iterable, Sequence

from bench.headline.changes import CHANGES, Change
from bench.page.figures import percent_kept, seconds_shown, shown
from bench.page.topics import SYSTEMS
from bench.store import Line, Taken

HEADER = ("system", "time", "throughput retained", "p99", "failed", "existing rows", "remark")
VALIDATED = {None: "", True: "validated", False: "**not validated**"}
# What the README has room for.
SHORT_SYSTEMS = ("seachange", "postgresql_plain", "postgresql_careful", "ducklake", "deltalake")
OTHERWISE = {"postgresql_careful": "postgresql_batched"}

Lines = dict[tuple[str, str], Line]


def lines_of(taken: Iterable[Taken]) -> Lines:
    """By change and system."""
    return {
        (line.facts["change"], line.facts["system"]): line
        for measure in taken
        if measure.topic == "headline"
        for line in measure.lines
    }


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [row(*header), row(*("---" for _ in header)), *(row(*cells) for cells in rows)]


def tables(lines: Lines) -> list[str]:
    text: list[str] = []
    for change in CHANGES:
        text += ["", f"### {sentence(change)}", ""]
        text += table(HEADER, (cells(SYSTEMS[name], lines.get((change.name, name))) for name in SYSTEMS))
    return text


def sentence(change: Change) -> str:
    return change.title[0].upper() + change.title[1:]


def cells(system: str, line: Line | None) -> tuple[str, ...]:
    if line is None or line.subject is None:
        return (system, "", "", "", "", "", "not measured" if line is None else in_cell(line.reason))
    facts = line.facts
    return (
        system,
        seconds_shown(line.subject.median),
        f"{percent_kept(facts):.0f} % of {shown(facts['rate_before'], '/s')}",
        f"{shown(facts['p99_ms'], 'ms')} (before: {shown(facts['p99_ms_before'], 'ms')})",
        f"{facts['failed']:,} of {facts['transactions']:,}",
        VALIDATED[facts["validated"]],
        in_cell(remark(facts)),
    )


def remark(facts: dict[str, object]) -> str:
    """The remark on the method, and the first of the errors."""
    errors = facts["errors"]
    assert isinstance(errors, dict)
    said = [str(facts["remark"]), *(f"`{' '.join(error.split())[:90]}`" for error in list(errors)[:1])]
    return "; ".join(filter(None, said))


def in_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def short_table(lines: Lines) -> list[str]:
    header = ("", *(SYSTEMS[name] for name in SHORT_SYSTEMS))
    return table(
        header, ((change.title, *(short(lines, change, name) for name in SHORT_SYSTEMS)) for change in CHANGES)
    )


def short(lines: Lines, change: Change, system: str) -> str:
    """Duration, throughput retained, p99 and failures; of another method if this one does not exist."""
    line = lines.get((change.name, system))
    if line is None or line.subject is None:
        if system in OTHERWISE:
            return f"{short(lines, change, OTHERWISE[system])} (batched)"
        return "fails" if line is not None and line.reason.startswith("failed") else "not supported"
    facts = line.facts
    said = [seconds_shown(line.subject.median), f"{percent_kept(facts):.0f} %", seconds_shown(facts["p99_ms"] / 1000)]
    return ", ".join([*said, *([f"{facts['failed']:,} failed"] if facts["failed"] else [])])


def faster_peers(lines: Lines) -> list[str]:
    """The changes that a peer made in less time, whatever the effect on the load."""
    found = []
    for change in CHANGES:
        ours = lines.get((change.name, "seachange"))
        if ours is None or ours.subject is None:
            continue
        for name, title in SYSTEMS.items():
            theirs = lines.get((change.name, name))
            if theirs is not None and theirs.subject is not None and theirs.subject.median < ours.subject.median:
                found.append(
                    f"- {change.title}: {seconds_shown(ours.subject.median)}, {title}"
                    f" {seconds_shown(theirs.subject.median)}, with {percent_kept(theirs.facts):.0f} %"
                    f" of its throughput retained (Seachange: {percent_kept(ours.facts):.0f} %)"
                )
    return found

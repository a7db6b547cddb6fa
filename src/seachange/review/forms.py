"""The findings about migrations as text, JSON, SARIF 2.1.0 or annotations of a GitHub workflow."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import seachange
from seachange.planner.explain.words import bytes_in_words, count_of
from seachange.review.finding import Forbidden, StatementFinding

_STATEMENT_CHARS_MAX = 100
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
_RULES: dict[str, str] = {
    "refused": "The statement fails.",
    Forbidden.VALIDATE: "All rows are read.",
    Forbidden.BUILD: "All rows are read, and an index is written.",
    Forbidden.REBUILD: "All rows are rewritten.",
    Forbidden.WAIT: "The change waits for older transactions.",
    Forbidden.IRREVERSIBLE: "Values are lost when their history is no longer kept.",
    "accepted": "The statement changes definitions only.",
}
# A message in an annotation is one line; these characters end its parts.
_ESCAPED = (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"))
_ESCAPED_IN_PROPERTY = (*_ESCAPED, (":", "%3A"), (",", "%2C"))


def is_bad(finding: StatementFinding, forbidden: frozenset[Forbidden]) -> bool:
    return finding.is_refused or bool(finding.traits & forbidden)


def as_text(findings: Sequence[StatementFinding], forbidden: frozenset[Forbidden]) -> str:
    lines = [line for finding in findings for line in _text_lines(finding, forbidden)]
    bad = sum(is_bad(finding, forbidden) for finding in findings)
    lines.append(f"{count_of(len(findings), 'statement')}, {bad} refused or forbidden")
    return "\n".join(lines) + "\n"


def as_json(findings: Sequence[StatementFinding], forbidden: frozenset[Forbidden]) -> str:
    listed = [
        {**asdict(finding), "traits": sorted(finding.traits), "is_bad": is_bad(finding, forbidden)}
        for finding in findings
    ]
    return json.dumps(listed, indent=2) + "\n"


def as_github(findings: Sequence[StatementFinding], forbidden: frozenset[Forbidden]) -> str:
    lines = []
    for finding in findings:
        place = f"file={_escape(finding.file, _ESCAPED_IN_PROPERTY)},line={finding.line}"
        title = _escape(_rule(finding, forbidden), _ESCAPED_IN_PROPERTY)
        message = _escape("\n".join([_summary(finding), *_told(finding)]), _ESCAPED)
        lines.append(f"::{_level(finding, forbidden, 'notice')} {place},title={title}::{message}\n")
    return "".join(lines)


def as_sarif(findings: Sequence[StatementFinding], forbidden: frozenset[Forbidden]) -> str:
    rules = [{"id": name, "shortDescription": {"text": text}} for name, text in _RULES.items()]
    tool = {"name": "seachange plan", "version": seachange.__version__, "rules": rules}
    results = [_sarif_result(finding, forbidden) for finding in findings]
    log = {"$schema": _SARIF, "version": "2.1.0", "runs": [{"tool": {"driver": tool}, "results": results}]}
    return json.dumps(log, indent=2) + "\n"


def _sarif_result(finding: StatementFinding, forbidden: frozenset[Forbidden]) -> dict[str, Any]:
    region = {"startLine": finding.line, "snippet": {"text": finding.statement}}
    return {
        "ruleId": _rule(finding, forbidden),
        "level": _level(finding, forbidden, "note"),
        "message": {"text": "\n".join([_summary(finding), *_told(finding)])},
        "locations": [
            {"physicalLocation": {"artifactLocation": {"uri": finding.file.replace("\\", "/")}, "region": region}}
        ],
    }


def _rule(finding: StatementFinding, forbidden: frozenset[Forbidden]) -> str:
    if finding.is_refused:
        return "refused"
    traits = finding.traits & forbidden or finding.traits
    # The last of them in the order of `Forbidden`.
    return str(max(traits, key=list(Forbidden).index, default="accepted"))


def _level(finding: StatementFinding, forbidden: frozenset[Forbidden], otherwise: str) -> str:
    if is_bad(finding, forbidden):
        return "error"
    return "warning" if finding.traits & {Forbidden.REBUILD, Forbidden.IRREVERSIBLE} else otherwise


def _text_lines(finding: StatementFinding, forbidden: frozenset[Forbidden]) -> Iterator[str]:
    mark = "error: " if is_bad(finding, forbidden) else ""
    words = " ".join(finding.statement.split())
    shown = words if len(words) <= _STATEMENT_CHARS_MAX else f"{words[:_STATEMENT_CHARS_MAX]}..."
    yield f"{finding.file}:{finding.line}: {mark}{shown}"
    yield f"  {_summary(finding)}"
    for line in _told(finding):
        yield f"  {line}"


def _summary(finding: StatementFinding) -> str:
    if finding.is_refused:
        return f"refused: {finding.sqlstate}: {finding.message}"
    if not finding.strategy:
        return "not a schema change: its work is not planned"
    waits = "waits for nothing" if not finding.waits else f"waits for older transactions: {finding.waits} times"
    if not finding.rows and finding.rows is not None:
        return f"{finding.strategy}: {waits}"
    rows = "an unknown number of rows" if finding.rows is None else f"about {count_of(finding.rows, 'row')}"
    took = "" if finding.ms is None else f", about {finding.ms / 1_000:,.3g} s"
    moved = "" if finding.bytes is None else f", writes {bytes_in_words(finding.bytes)}"
    return f"{finding.strategy}: reads {rows}{moved}{took}; {waits}"


def _told(finding: StatementFinding) -> Iterator[str]:
    if finding.hint:
        yield f"hint: {finding.hint}"
    for lost in finding.loses:
        yield f"irreversible: {lost}"
    yield from finding.remarks


def _escape(text: str, escapes: Sequence[tuple[str, str]]) -> str:
    for character, replacement in escapes:
        text = text.replace(character, replacement)
    return text

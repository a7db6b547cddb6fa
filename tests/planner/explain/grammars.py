"""Strict grammars of the DOT and the Mermaid that we write: subsets of the languages, so that what is accepted here is
valid there."""

import re
from collections.abc import Mapping, Sequence

_ID = r"[A-Za-z][A-Za-z0-9_]*"

# Within quotes, DOT ends a string at a quote that no backslash stands before; other escapes than these have meanings.
_DOT_STRING = r'"(?:[^"\\]|\\\\|\\"|\\n)*"'
_DOT_LINES = {
    "open": re.compile(r"digraph change \{"),
    "setting": re.compile(r'  rankdir=TB;|  node \[shape=box, style=filled, fontname="sans-serif"\];'),
    "cluster": re.compile(rf"  subgraph cluster_({_ID}) \{{"),
    "label": re.compile(rf"    label={_DOT_STRING};"),
    "node": re.compile(rf"    ({_ID}) \[label={_DOT_STRING}, fillcolor=[a-z]+\];"),
    "end": re.compile(r"  \}"),
    "edge": re.compile(rf"  ({_ID}) -> ({_ID})(?: \[style=dashed, label={_DOT_STRING}\])?;"),
    "close": re.compile(r"\}"),
}
# What may follow what.
_DOT_ORDER = {
    "": ("open",),
    "open": ("setting",),
    "setting": ("setting", "cluster", "close"),
    "cluster": ("label",),
    "label": ("node", "end"),
    "node": ("node", "end"),
    "end": ("cluster", "edge", "close"),
    "edge": ("edge", "close"),
    "close": (),
}

# In quotes Mermaid takes any text but a quote; markup and character references have to be meant.
_MERMAID_STRING = r'"(?:[^"<>#&\[\]{}|`\\;\n]|<br/>|#[0-9]+;)*"'
_MERMAID_LINES = {
    "open": re.compile(r"flowchart TB"),
    "subgraph": re.compile(rf"  subgraph ({_ID})\[{_MERMAID_STRING}\]"),
    "node": re.compile(rf"    ({_ID})\[{_MERMAID_STRING}\]:::({_ID})"),
    "end": re.compile(r"  end"),
    "edge": re.compile(rf"  ({_ID}) (?:-->|-\. {_MERMAID_STRING} \.->|~~~) ({_ID})"),
    "class": re.compile(rf"  classDef ({_ID}) fill:#[0-9a-f]{{6}},stroke:#[0-9a-f]{{6}},color:#[0-9a-f]{{6}}"),
}
_MERMAID_ORDER = {
    "": ("open",),
    "open": ("subgraph", "class"),
    "subgraph": ("node",),
    "node": ("node", "end"),
    "end": ("subgraph", "edge", "class"),
    "edge": ("edge", "class"),
    "class": ("class",),
}


Found = list[tuple[str, tuple[str, ...]]]
Order = Mapping[str, Sequence[str]]


class InvalidTextError(Exception):
    pass


def _read(lines: list[str], forms: Mapping[str, re.Pattern[str]], order: Order) -> Found:
    state = ""
    found: Found = []
    for line in lines:
        for name in order[state]:
            match = forms[name].fullmatch(line)
            if match is not None:
                found.append((name, match.groups()))
                state = name
                break
        else:
            raise InvalidTextError(f"not expected after {state or 'the beginning'}: {line}")
    return found


def read_dot(lines: list[str]) -> tuple[set[str], list[tuple[str, str]]]:
    """The nodes and edges; InvalidTextError if the text is not valid."""
    found = _read(lines, _DOT_LINES, _DOT_ORDER)
    if not found or found[-1][0] != "close":
        raise InvalidTextError("the graph is not closed")
    return _graph(found, {"cluster", "node"})


def read_mermaid(lines: list[str]) -> tuple[set[str], list[tuple[str, str]]]:
    found = _read(lines, _MERMAID_LINES, _MERMAID_ORDER)
    defined = {groups[0] for name, groups in found if name == "class"}
    used = {groups[1] for name, groups in found if name == "node"}
    if not used <= defined:
        raise InvalidTextError(f"classes that are not defined: {used - defined}")
    return _graph(found, {"subgraph", "node"})


def _graph(found: Found, kinds: set[str]) -> tuple[set[str], list[tuple[str, str]]]:
    names = [groups[0] for kind, groups in found if kind in kinds]
    edges = [(groups[0], groups[1]) for kind, groups in found if kind == "edge"]
    if len(names) != len(set(names)):
        raise InvalidTextError("a name is used twice")
    if missing := {end for edge in edges for end in edge} - set(names):
        raise InvalidTextError(f"edges to nowhere: {missing}")
    return set(names), edges

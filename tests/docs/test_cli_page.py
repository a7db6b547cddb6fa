"""docs/cli.md has every command with all of its options, as `--help` prints them; `make golden` updates it."""

import argparse
from importlib import import_module

import pytest

from seachange.cli.main import COMMANDS, parser_of
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "cli.md"
MARK = "<!-- generated from src/seachange/cli -->\n"


def named(action: argparse.Action) -> str:
    """An option or argument, with what it takes."""
    if action.choices is not None:
        value = f" {{{','.join(map(str, action.choices))}}}"
    elif action.nargs == 0:
        value = ""
    else:
        value = f" {action.metavar or action.dest.upper()}"
    if not action.option_strings:
        return f"`{value.strip()}{' ...' if action.nargs == '*' else ''}`"
    return ", ".join(f"`{option}{value}`" for option in action.option_strings)


def section(command: str) -> str:
    module_name, _ = COMMANDS[command]
    module = import_module(module_name)
    parser = parser_of(command, module)
    # The parser keeps its arguments under a name of its own; there is no other way to ask for them.
    actions = [action for action in parser._actions if action.dest != "help"]
    rows = [f"| {named(action)} | {mandatory(action)}{action.help} |" for action in actions]
    table = ["| option | meaning |", "| --- | --- |", *rows]
    examples = module.EXAMPLES.removeprefix("examples:\n").rstrip()
    return "\n".join(
        [
            f"## {command}",
            "",
            (module.__doc__ or "").strip(),
            "",
            *table,
            "",
            "```text",
            *(line.removeprefix("  ") for line in examples.splitlines()),
            "```",
            "",
        ]
    )


def mandatory(action: argparse.Action) -> str:
    return "**required**; " if action.required and action.option_strings else ""


@pytest.mark.golden
def test_the_page_has_every_command(rewrite: bool):
    head, mark, rest = PAGE.read_text().partition(MARK)
    assert mark
    wanted = "\n" + "\n".join(section(command) for command in COMMANDS).rstrip() + "\n"
    if rewrite:
        PAGE.write_text(head + mark + wanted)
    else:
        assert rest == wanted

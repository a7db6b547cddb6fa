"""Golden files: a case is a list of blocks, each a command, its input, a line of dashes and the output.

Blocks are set apart by an empty line, so neither input nor output has one.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from seachange.errors import Error
from seachange.model.statements.session_statements import DdlExplanation
from seachange.planner.explain.form import explain_plan
from seachange.planner.known_schema import KnownSchema
from seachange.planner.plan import ChangePlan
from tests.planner.world import World, apply_stages, reverts

FOLDER = Path(__file__).parent / "testdata"
RULE = "----"


@dataclass(frozen=True, slots=True)
class Block:
    command: str
    input: str
    output: str = ""

    @property
    def text(self) -> str:
        return "".join(f"{part}\n" for part in (self.command, self.input, RULE, self.output) if part)


def read_blocks(text: str) -> list[Block]:
    blocks = []
    for part in text.strip().split("\n\n"):
        lines = part.strip("\n").split("\n")
        rule = lines.index(RULE)
        blocks.append(Block(lines[0], "\n".join(lines[1:rule]), "\n".join(lines[rule + 1 :])))
    return blocks


def write_blocks(blocks: list[Block]) -> str:
    return "\n".join(block.text for block in blocks)


class Case:
    """Runs the blocks of one file in order.

    setup: statements, each a transaction that runs to its end. change: the same, of which each is a change of the
    history, with the next number. sizes: what is stored of tables. move: objects
    that are in another database. plan: statements of one
    transaction, which is planned and not run. block: the same, with child transactions before its COMMIT. shape: what
    the last plan costs. revert: its ways back.
    """

    def __init__(self) -> None:
        self.world = World()
        self.plans: list[ChangePlan] = []

    def answer(self, blocks: list[Block]) -> list[Block]:
        return [replace(block, output=self._run(block)) for block in blocks]

    def _run(self, block: Block) -> str:
        match block.command:
            case "setup":
                self.world.run_each(block.input)
                return ""
            case "change":
                self.world.change_each(block.input)
                return ""
            case "sizes":
                for line in block.input.splitlines():
                    name, *sizes = line.split()
                    self.world.resize(name, **{key: int(value) for key, value in (s.split("=") for s in sizes)})
                return ""
            case "move":
                for line in block.input.splitlines():
                    self.world.move(*line.split())
                return ""
            case "plan" | "block" as command:
                try:
                    self.plans.append(self.world.plan(block.input, in_block=command == "block"))
                except Error as error:
                    return "\n".join([f"ERROR {error.sqlstate}: {error}", *([error.hint] if error.hint else [])])
                return self._explain(DdlExplanation.STAGES)
            case "shape":
                return self._explain(DdlExplanation.COST)
            case "revert":
                return "\n".join(print_reverts(self.plans[-1], self.world.catalog))
            case command:
                raise ValueError(f"no such command: {command}")

    def _explain(self, form: DdlExplanation) -> str:
        return text_of(explain_plan(self.plans[-1], self.world.catalog, form))


def text_of(lines: list[str]) -> str:
    return "\n".join(line.rstrip() for line in lines if line.strip())


def print_reverts(plan: ChangePlan, catalog: KnownSchema) -> Iterator[str]:
    """The ways back; stages from which it is the same one are told together."""
    ways = [(number, way_back(plan, back, number, catalog)) for number, back in reverts(plan)]
    for way, numbers in groupby(ways, key=lambda pair: pair[1]):
        first, *others = [number for number, _ in numbers]
        yield f"after stage {first}:" if not others else f"after stages {first} to {others[-1]}:"
        yield from way
    if not ways:
        yield "no stage can be reverted"


def way_back(plan: ChangePlan, back: ChangePlan, number: int, catalog: KnownSchema) -> list[str]:
    """The stages of a revert. The plan shows where its elements are, so that is left out."""
    lines = explain_plan(back, apply_stages(catalog, plan, plan.stages[:number]), DdlExplanation.STAGES)
    found = [re.sub(r": \S.* ->", " ->", line) for line in lines if _TOLD.match(line)]
    return [re.sub(r"version \d+", "the version before", line).rstrip() for line in found]


# Stages, transitions, waits for others, and work.
_TOLD = re.compile(r"  Stage |.* -> |    waits for (?!nothing)|      (?!publish)[a-z]+ the data")

"""Golden files: a case is a list of blocks, each a command, its input, a line of dashes and the output.

Blocks are set apart by an empty line, so neither input nor output has one.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from seachange.errors import Error
from seachange.planner.plan import Plan
from tests.planner.printing import print_plan, print_reverts
from tests.planner.world import World

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

    setup: statements, each a transaction that runs to its end. sizes: what is stored of tables. plan: statements of one
    transaction, which is planned and not run. revert: the ways back of the last plan.
    """

    def __init__(self) -> None:
        self.world = World()
        self.plans: list[Plan] = []

    def answer(self, blocks: list[Block]) -> list[Block]:
        return [replace(block, output=self._run(block)) for block in blocks]

    def _run(self, block: Block) -> str:
        match block.command:
            case "setup":
                self.world.run_each(block.input)
                return ""
            case "sizes":
                for line in block.input.splitlines():
                    name, *sizes = line.split()
                    self.world.resize(name, **{key: int(value) for key, value in (s.split("=") for s in sizes)})
                return ""
            case "plan":
                try:
                    self.plans.append(self.world.plan(block.input))
                except Error as error:
                    return f"ERROR {error.sqlstate}: {error}"
                return print_plan(self.plans[-1])
            case "revert":
                return print_reverts(self.plans[-1])
            case command:
                raise ValueError(f"no such command: {command}")

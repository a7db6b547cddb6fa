"""A server of the soak: `seachange serve`, with a planted defect if there is to be one.

python -m soak.node [--plant NAME] ARGUMENTS OF SEACHANGE SERVE
"""

from __future__ import annotations

import sys

from seachange.cli.main import main as run_command
from soak.plants import PLANTS


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--plant"]:
        PLANTS[arguments[1]]()
        arguments = arguments[2:]
    return run_command(["serve", *arguments])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The examples of the README, the tutorial and the consistency page run as shown, in order, in an empty folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks
from tests.support.patience import PATIENCE_S


def run(command: list[str], text: str) -> str:
    tools = os.fspath(Path(sys.executable).parent)
    environment = os.environ | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        command, input=text, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("page", "folder", "programs"),
    [
        ("README.md", "/tmp/shop", 2),
        ("docs/tutorial.md", "/tmp/tour", 6),
        ("docs/consistency.md", "/tmp/consistent", 1),
    ],
)
def test_blocks_run_and_print_what_they_show(page: str, folder: str, programs: int, tmp_path: Path):
    """A block without a language that follows one is what it prints."""
    shown = blocks((ROOT / page).read_text())
    ran = 0
    for block, after in zip(shown, [*shown[1:], None], strict=True):
        text = block.text.replace(folder, str(tmp_path / "data"))
        if block.language == "sh":
            printed = run(["bash", "-e"], text)
        elif block.language == "python":
            printed = run([sys.executable], text)
        else:
            continue
        ran += 1
        if after is not None and not after.language:
            assert printed == after.text
    assert ran == programs

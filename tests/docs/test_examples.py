"""What the README, the tutorial and the page on consistency show works: it is run, block by block, in a bare folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks
from tests.support.patience import PATIENCE_S


def run(command: list[str], text: str) -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
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
    tools = Path(sys.executable).parent
    ran = 0
    for block, after in zip(shown, [*shown[1:], None], strict=True):
        text = block.text.replace(folder, str(tmp_path / "data")).replace(".venv/bin", os.fspath(tools))
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

"""Virtual environments of the peers, made on demand from their pinned requirements."""

import hashlib
import subprocess
import sys
import venv
from pathlib import Path

from bench.harness import Unavailable

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = ROOT / ".bench-venvs"


def requirements_of(peer: str) -> Path:
    return Path(__file__).with_name(f"{peer}.txt")


def interpreter_of(peer: str) -> Path:
    """The peer's Python; its environment is made if it is absent or its requirements changed."""
    folder = ENVIRONMENTS / peer
    stamp = folder / ".stamp"
    wanted = fingerprint(peer)
    if not stamp.exists() or stamp.read_text() != wanted:
        create(peer, folder)
        stamp.write_text(wanted)
    return folder / "bin" / "python"


def fingerprint(peer: str) -> str:
    content = requirements_of(peer).read_bytes() + sys.version.encode()
    return hashlib.sha256(content).hexdigest()


def create(peer: str, folder: Path) -> None:
    ENVIRONMENTS.mkdir(exist_ok=True)
    # The folder hides itself from git, as it lies outside of this package.
    (ENVIRONMENTS / ".gitignore").write_text("*\n")
    venv.create(folder, clear=True, with_pip=True)
    python, requirements = folder / "bin" / "python", requirements_of(peer)
    done = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--requirement", requirements],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise Unavailable(f"{peer} cannot be installed: {' '.join(errors[-1:])}")

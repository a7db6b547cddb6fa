"""Describes the machine and the versions that the numbers belong to."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version

from bench.peers.environment import ROOT, requirements_of

OWN_PACKAGES = ("seachange", "duckdb", "pyarrow", "psycopg", "sqlglot", "numpy")
PEER_PACKAGES = {
    "deltalake": ("deltalake", "pyarrow"),
    "pyiceberg": ("pyiceberg", "pyarrow"),
    "ducklake": ("duckdb", "duckdb_extension_ducklake"),
}


def describe() -> dict[str, object]:
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "python": platform.python_version(),
        "revision": revision(),
        "packages": {name: version_of(name) for name in OWN_PACKAGES},
        "peers": {peer: pinned(peer, names) for peer, names in PEER_PACKAGES.items()},
    }


def revision() -> str:
    """The commit that was measured, marked if the working tree differs from it."""
    command = ("git", "describe", "--always", "--dirty", "--exclude=*")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def pinned(peer: str, packages: tuple[str, ...]) -> dict[str, str]:
    lines = requirements_of(peer).read_text().splitlines()
    pins = dict(line.split("==") for line in lines if "==" in line)
    return {name: pins[name] for name in packages}

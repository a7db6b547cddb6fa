"""Runs every client against a server of its own and prints client x feature; `--help` lists the options."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from compat.catalogue import CLIENTS, Client
from compat.environment import HOME, ROOT, Unavailable
from compat.expected import KNOWN_FAILURES
from compat.servers import Inconsistent, serve_postgresql, serve_seachange
from compat.table import Cell, Verdict, as_markdown, as_text, judge

CLIENT_SECONDS_MAX = 240
# The part of the page that is written by a run.
PAGE = ROOT / "docs" / "clients.md"
BEGIN, END = "<!-- table -->", "<!-- end of the table -->"


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="compat", description="Tries PostgreSQL's clients against Seachange.")
    parser.add_argument("--only", metavar="CLIENT[,CLIENT]", help=f"of {', '.join(client.name for client in CLIENTS)}")
    parser.add_argument("--control", action="store_true", help="try them against PostgreSQL itself")
    parser.add_argument("--rewrite", action="store_true", help=f"write the table into {PAGE.relative_to(ROOT)}")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="clients at a time (default: 2)")
    options = parser.parse_args(arguments)
    names = options.only.split(",") if options.only else [client.name for client in CLIENTS]
    unknown = set(names) - {client.name for client in CLIENTS}
    if unknown:
        parser.error(f"no such client: {', '.join(sorted(unknown))}")
    options.clients = [client for client in CLIENTS if client.name in names]
    return options


def try_client(client: Client, command: list[str] | Unavailable, control: bool) -> list[Cell]:
    if isinstance(command, Unavailable):
        return [Cell(client.name, "all", Verdict.SKIPPED, str(command))]
    cells = _try_once(client, command, control)
    bad = [f"{cell.feature}: {cell.reason}" for cell in cells if cell.is_bad]
    if bad:
        # A busy machine may have been too slow for a client's patience; what is wrong is wrong again.
        print(f"{client.name} is tried again after {'; '.join(bad)}", flush=True)
        cells = _try_once(client, command, control)
    return cells


def _try_once(client: Client, command: list[str], control: bool) -> list[Cell]:
    known = {} if control else KNOWN_FAILURES
    server: AbstractContextManager[str] = serve_postgresql() if control else serve_seachange()
    log = HOME / f"{client.module}.log"
    cells = []
    try:
        with server as url, log.open("w") as errors:
            for line in run(command, url, errors.fileno()):
                found = json.loads(line)
                cells.append(judge(client.name, found["feature"], found["problem"], known))
    except Inconsistent as problem:
        cells.append(Cell(client.name, "seachange check", Verdict.FAILS, str(problem)))
    return cells


def run(command: list[str], url: str, errors: int) -> list[str]:
    """The lines that a client prints; other output goes to its log."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    try:
        done = subprocess.run(
            [*command, url],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            check=False,
            timeout=CLIENT_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired as expired:
        told = (expired.stdout or b"").decode().splitlines()
        return [*told, json.dumps({"feature": "end", "problem": f"not reached in {CLIENT_SECONDS_MAX} seconds"})]
    if done.returncode != 0 or not done.stdout:
        failed = json.dumps({"feature": "end", "problem": f"the client ended with {done.returncode}"})
        return [*done.stdout.splitlines(), failed]
    return done.stdout.splitlines()


def prepare(client: Client) -> list[str] | Unavailable:
    try:
        return client.prepare(client.module)
    except Unavailable as problem:
        return problem


def rewrite(page: Path, cells: Sequence[Cell]) -> None:
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n{as_markdown(cells)}\n{END}{after}", encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    options = parse_arguments(arguments)
    # One after the other: two that share an environment would both make it.
    commands = [prepare(client) for client in options.clients]
    with ThreadPoolExecutor(options.processes) as pool:
        tried = pool.map(partial(try_client, control=options.control), options.clients, commands)
        cells = [cell for found in tried for cell in found]
    print(as_text(cells))
    if options.rewrite:
        rewrite(PAGE, cells)
    bad = sum(cell.is_bad for cell in cells)
    print(f"{len(cells)} features, {bad} not as expected; what clients said is in {HOME.relative_to(ROOT)}/*.log")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

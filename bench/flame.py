"""Where a server spends its time: `make profile` (ARGS="--load read.eight --seconds 10 --to FOLDER").

Prints the time line of a transaction, by message (`bench.row_path`), and writes a flame graph of all threads of a
server that serves a load of pgbench, drawn by py-spy, which may have to be run as root.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import row_path
from bench.measures.pgbench import LOADS, fill, run_load
from bench.peers.served import serve_seachange

_PYSPY = Path(sys.executable).with_name("py-spy")
_SAMPLES_PER_SECOND = 250
_WARM_UP_S = 2


def draw(load_name: str, seconds: int, folder: Path) -> Path:
    load = next(load for load in LOADS if load.name == load_name)
    drawn = folder / f"{load.name}.svg"
    with tempfile.TemporaryDirectory() as data, serve_seachange(Path(data) / "data") as served:
        fill(served, 1)
        run_load(served, load, _WARM_UP_S)
        command = [str(_PYSPY), "record", "--pid", str(served.pid), "--threads", "--output", str(drawn)]
        command += ["--duration", str(seconds), "--rate", str(_SAMPLES_PER_SECOND)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as recorder:
            run = run_load(served, load, seconds + 1)
            _, problem = recorder.communicate()
        if recorder.returncode:
            raise SystemExit(f"py-spy: {problem.strip()}")
    print(f"{load.note}: {run.rate:.0f} transactions/s, {run.cpu_ms:.3f} ms of CPU for each")
    return drawn


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.flame", description=__doc__)
    parser.add_argument("--load", choices=[load.name for load in LOADS], default="write.eight")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--to", type=Path, default=Path("bench/results"), help="the folder of the flame graph")
    options = parser.parse_args()
    row_path.print_time_line()
    options.to.mkdir(parents=True, exist_ok=True)
    print(draw(options.load, options.seconds, options.to))


if __name__ == "__main__":
    main()

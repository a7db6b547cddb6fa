"""Draws values of a sequence in a process of its own and prints each; then waits until its output is closed."""

import sys

import seachange


def main() -> int:
    data, catalog, sequence, count = sys.argv[1:]
    with seachange.connect(data, catalog=catalog or None, autocommit=True) as db:
        for _ in range(int(count)):
            print(db.execute(f"select nextval('{sequence}')").fetchall()[0][0], flush=True)
        print("done", flush=True)
        sys.stdin.read()
    return 0

"""Does to a folder what a power cut may do, by the journal of a `PowerCutFileSystem`.

Content that was never fsynced is lost, so is a name whose folder was not fsynced after the rename, and a file that was
deleted since the folder's last fsync is back.
"""

import json
import os
from pathlib import Path

from seachange.runtime.opening import deleted_folder


def lose_unsynced(folder: Path, journal: Path, before: frozenset[str]) -> list[str]:
    """Undoes what was not durable; `before` are the names that existed before. Returns the affected names."""
    contents: set[str] = set()
    pending: dict[str, str] = {}
    durable: set[str] = set()
    deleted: set[str] = set()
    for line in journal.read_text().splitlines() if journal.exists() else ():
        match json.loads(line):
            case ["synced", path]:
                contents.add(path)
            case ["renamed", source, target]:
                pending[target] = source
            case ["folder"]:
                durable |= {target for target, source in pending.items() if source in contents}
                pending = {target: source for target, source in pending.items() if target not in durable}
                deleted.clear()
            case ["deleted", name]:
                deleted.add(name)
            case unknown:
                raise ValueError(f"{journal} has {unknown!r}")
    hit = [name for name in sorted(os.listdir(folder)) if name not in before and str(folder / name) not in durable]
    for name in hit:
        if str(folder / name) in pending and pending[str(folder / name)] not in contents:
            # The name survived and the content did not: the worse of the two outcomes.
            (folder / name).write_bytes(b"")
        else:
            (folder / name).unlink()
    for name in deleted - set(os.listdir(folder)):
        os.link(deleted_folder(journal) / name, folder / name)
    return hit

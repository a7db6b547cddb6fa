"""Where the data of a database lies: in a folder, or in an object store with a folder of this machine beside it.

The local folder has everything that is not a segment: temporary files, the segment cache, logs, `seachange.toml`, and
the SQLite catalog if there is one.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import xxhash

from seachange import errors

# The part of a database's folder or URL that has its segment files.
SEGMENTS = "segments"
CACHE = "cache"
# The schemes, and the names of the store that each one addresses.
SCHEMES = {"s3": "Amazon S3", "abfs": "Azure Blob Storage", "abfss": "Azure Blob Storage", "gs": "Google Cloud Storage"}
_URL = re.compile(r"([a-z][a-z0-9+.-]*)://([^/?#]*)(/[^?#]*)?")
# A bucket; a container with its account. The library does not check what it builds requests from.
_BUCKET = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_CONTAINER = re.compile(r"[A-Za-z0-9$][A-Za-z0-9-]*(@[A-Za-z0-9.-]+)?")
# With the name of a file, what S3 allows for a key.
_PREFIX_BYTES_MAX = 900
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class DataLocation:
    """`store` is the URL of the object store, None if the data is in the local folder, too. `is_chosen`: the local
    folder was given, rather than derived from the URL."""

    local: Path
    store: str | None = None
    is_chosen: bool = True

    @property
    def segments(self) -> str:
        return str(self.local / SEGMENTS) if self.store is None else f"{self.store}/{SEGMENTS}"

    def __str__(self) -> str:
        return str(self.local) if self.store is None else self.store


def as_location(data: Path | DataLocation) -> DataLocation:
    return data if isinstance(data, DataLocation) else DataLocation(data.absolute())


def is_url(text: str) -> bool:
    """
    >>> is_url("s3://bucket/shop"), is_url("data/shop"), is_url("C:shop")
    (True, False, False)
    """
    return "://" in text


def find_location(data: str | PathLike[str], local: str | PathLike[str] | None = None) -> DataLocation:
    """`data` is a folder or a URL; `local` the folder beside an object store, by default one of the user's.

    >>> str(find_location("s3://bucket/shop/")), find_location("s3://bucket/shop", "work").local.name
    ('s3://bucket/shop', 'work')
    """
    text = os.fspath(data)
    if not is_url(text):
        if local is not None:
            raise errors.DataFolderProblem(path=text, detail="a local folder can be given for an object store only")
        return DataLocation(Path(text).absolute())
    url = _checked(text)
    return DataLocation(Path(local).absolute() if local is not None else default_folder(url), url, local is not None)


def default_folder(url: str) -> Path:
    """The folder of this user for a store: the same for all processes of the machine."""
    base = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    name = _UNSAFE.sub("-", url.partition("://")[2])[:80]
    return Path(base).absolute() / "seachange" / f"{name}-{hashed(url)}"


def hashed(url: str) -> str:
    return xxhash.xxh3_64_hexdigest(url.encode())


def _checked(text: str) -> str:
    parsed = _URL.fullmatch(text)
    if parsed is None or not parsed[2]:
        raise errors.InvalidStore(url=_without_secrets(text), detail="it is not scheme://bucket/prefix")
    if parsed[1] not in SCHEMES:
        raise errors.InvalidStore(url=_without_secrets(text), detail=f'unknown scheme "{parsed[1]}"')
    if parsed[1] != "abfs" and parsed[1] != "abfss" and "@" in parsed[2]:
        raise errors.InvalidStore(url=_without_secrets(text), detail="it contains credentials")
    prefix = (parsed[3] or "").strip("/")
    if any(part in ("", ".", "..") for part in prefix.split("/")) and prefix:
        raise errors.InvalidStore(url=text, detail="the prefix has an empty part, . or ..")
    if (_BUCKET if parsed[1] in ("s3", "gs") else _CONTAINER).fullmatch(parsed[2]) is None:
        raise errors.InvalidStore(url=text, detail=f'"{parsed[2]}" is not the name of a bucket or container')
    if not prefix.isprintable() or len(prefix.encode(errors="replace")) > _PREFIX_BYTES_MAX:
        detail = f"the prefix has a character that cannot be printed, or more than {_PREFIX_BYTES_MAX} bytes"
        raise errors.InvalidStore(url=text, detail=detail)
    return f"{parsed[1]}://{parsed[2]}/{prefix}".rstrip("/")


def _without_secrets(text: str) -> str:
    """
    >>> _without_secrets("s3://key:secret@bucket/a?token=x")
    's3://bucket/a'
    """
    scheme, _, rest = text.partition("://")
    place, _, path = re.split(r"[?#]", rest)[0].partition("/")
    return f"{scheme}://{place.rpartition('@')[2]}" + (f"/{path}" if path else "")

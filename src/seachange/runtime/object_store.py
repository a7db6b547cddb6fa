"""An object store through obstore: objects are created once, read, listed and deleted, never renamed or replaced.

An object is created by one conditional PUT, repeated with back-off. If the answer of a PUT is lost, the repeated one
finds the object that the first has created: "already exists" is an error only if the content differs.

**Invariant:** no error, log line or catalog row contains a credential: the texts of the library, which quote requests,
are replaced by a short reason.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import AzureStore, GCSStore, S3Store

from seachange import errors
from seachange.runtime.aws_profile import credential_provider, profile_options
from seachange.runtime.checksum import new_digest
from seachange.runtime.filesystem import StoredFile, check_size
from seachange.runtime.interruption import check_interrupt
from seachange.runtime.threads import ThreadPool

T = TypeVar("T")
# The attribute of an object with its checksum: letters and digits only, as every store allows them.
_CHECKSUM = "seachangexxh3"
_CHUNK_BYTES = 4 << 20
_PAUSE_SECONDS = 0.2
# How often a PUT is repeated that was refused although there is no such object: for about 25 seconds.
_CONFLICTS_MAX = 7
# Objects that are deleted at a time by a store that cannot delete many by one request.
_DELETIONS = 8
# A whole segment must fit into the time of a request, over a slow line too; a line without any traffic is given up.
_CLIENT: dict[str, Any] = {
    "timeout": timedelta(minutes=20),
    "read_timeout": timedelta(seconds=30),
    "connect_timeout": "10s",
}
_BACKOFF = {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=5), "base": 2}
# Parts of the library's messages, and what they mean; the first that is found is the reason.
_PLACE = "Check the address of the bucket or container, its region, and that it exists."
_CREDENTIALS = (
    "Check the credentials in the environment of this process: for S3, AWS_PROFILE or AWS_ACCESS_KEY_ID, "
    "AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; for Azure, AZURE_STORAGE_ACCOUNT_NAME and "
    "AZURE_STORAGE_ACCOUNT_KEY. They need the rights to read, write, list and delete."
)
_RENEW = "Renew the credentials, and start this process again if they are in its environment."
_REACH = (
    "Check the network, that the store is running, and its address (AWS_ENDPOINT_URL or AZURE_STORAGE_ENDPOINT, if "
    "it is not the provider's own); then try again. This says nothing about the files in it."
)
_LATER = "Try again later. This says nothing about the files in the store."
_ANY = "Check the address of the store and the credentials in the environment of this process; then try again."
# Parts of the library's messages, what they mean, and what to do; the first that is found counts.
_REASONS = (
    ("NoSuchBucket", "the bucket does not exist", _PLACE),
    ("ContainerNotFound", "the container does not exist", _PLACE),
    ("ExpiredToken", "the credentials have expired", _RENEW),
    ("TokenRefreshRequired", "the credentials have expired", _RENEW),
    ("InvalidToken", "the session token is wrong", _CREDENTIALS),
    ("RequestTimeTooSkewed", "the clock of this machine is wrong", "Set the clock of this machine."),
    ("InvalidAccessKeyId", "the access key is not known", _CREDENTIALS),
    ("SignatureDoesNotMatch", "the secret key is wrong", _CREDENTIALS),
    ("AuthenticationFailed", "the account key or token is wrong", _CREDENTIALS),
    ("AuthorizationFailure", "the account key or token is wrong", _CREDENTIALS),
    ("Invalid Access Key", "the account key cannot be decoded", _CREDENTIALS),
    ("169.254.169.254", "no credentials were found", _CREDENTIALS),
    ("metadata.google.internal", "no credentials were found", _CREDENTIALS),
    ("MissingRegion", "the region is not known", _PLACE),
    ("kind: Connect", "the connection failed", _REACH),
    ("kind: Timeout", "the request timed out", _REACH),
    ("kind: Request", "the connection was lost", _REACH),
    ("kind: Interrupted", "the connection was lost", _REACH),
    ("status code: 503", "the store is overloaded (503)", _LATER),
    ("status code: 429", "the store is overloaded (429)", _LATER),
    ("status code: 301", "the bucket is in another region", _PLACE),
    ("status code: 403", "access was denied", _CREDENTIALS),
    ("status code: 401", "access was denied", _CREDENTIALS),
    ("status code: 5", "the store failed", _LATER),
)


@dataclass(frozen=True, slots=True)
class Patience:
    """How often the library repeats a request, and how often the whole transfer is begun again."""

    retries: int = 8
    attempts: int = 4


@dataclass(frozen=True, slots=True)
class ObjectHead:
    """The size of an object; its checksum if it was created by this program."""

    size_bytes: int
    checksum: bytes | None


@dataclass(frozen=True, slots=True)
class Transferred:
    size_bytes: int
    checksum: bytes


class ObjectStore:
    """The objects whose names begin with the path of the URL. Thread-safe."""

    def __init__(self, url: str, patience: Patience = Patience()) -> None:  # noqa: B008 - a value
        self.url = url
        self._attempts = patience.attempts
        with self._errors("open", ""):
            self._store = _open(url, patience.retries)

    def create(self, name: str, body: bytes | Path) -> bool:
        """Creates the object; False if there is one with the same content, which a lost answer explains. Raises
        FileExists if there is another one."""
        content = body if isinstance(body, bytes) else body.read_bytes()
        digest = new_digest(content).digest()
        attributes = {_CHECKSUM: digest.hex()}

        def put() -> bool:
            try:
                obstore.put(self._store, name, content, attributes=attributes, mode="create", use_multipart=False)
            except AlreadyExistsError:
                return False
            return True

        for attempt in range(_CONFLICTS_MAX):
            if self._run("write", name, put):
                return True
            found = self.head(name)
            if found is not None:
                break
            # S3 also refuses a PUT while another one of that name is under way: the one whose connection was lost.
            check_interrupt()
            time.sleep(_PAUSE_SECONDS * 2**attempt)
        else:
            detail = "the store refuses the object because of a conflict, but has none of that name"
            raise errors.StoreProblem(action="write", file=self._called(name), detail=detail, remedy=_LATER)
        if found.size_bytes != len(content) or (found.checksum or self._digest(name)) != digest:
            raise errors.FileExists(file=self._called(name))
        return False

    def read(self, name: str) -> bytes | None:
        """The content; None if there is no object."""

        def get() -> bytes | None:
            try:
                return bytes(obstore.get(self._store, name).bytes())
            except FileNotFoundError as problem:
                _check_bucket(problem)
                return None

        return self._run("read", name, get)

    def download(self, name: str, path: Path) -> Transferred | None:
        """Writes the content to a file; None if there is no object."""

        def get() -> Transferred | None:
            digest, size = new_digest(), 0
            try:
                stream = obstore.get(self._store, name).stream(_CHUNK_BYTES)
            except FileNotFoundError as problem:
                _check_bucket(problem)
                return None
            with path.open("wb", buffering=0) as target:
                for chunk in stream:
                    check_interrupt()
                    target.write(chunk)
                    digest.update(chunk)
                    size += len(chunk)
            return Transferred(size, digest.digest())

        return self._run("read", name, get)

    def read_range(self, file: StoredFile, start: int, end: int) -> bytes:
        """Bytes of the object; raises SegmentDamaged if it is missing, has another size, or was created with another
        content."""
        name = file.name

        def get() -> bytes:
            try:
                found = obstore.get(self._store, name, options={"range": (start, end)})
            except FileNotFoundError as problem:
                _check_bucket(problem)
                raise errors.SegmentDamaged(file=name, detail="it is missing") from None
            check_size(file, found.meta["size"])
            # An object that another program has copied may lack it.
            checksum = dict(found.attributes).get(_CHECKSUM)
            if checksum is not None and checksum != file.checksum.hex():
                raise errors.SegmentDamaged(file=name, detail="its checksum differs from the recorded one")
            return bytes(found.bytes())

        return self._run("read", name, get)

    def head(self, name: str) -> ObjectHead | None:
        def get() -> ObjectHead | None:
            try:
                found = self._find(name)
            except FileNotFoundError as problem:
                _check_bucket(problem)
                return None
            checksum = dict(found.attributes).get(_CHECKSUM)
            return ObjectHead(found.meta["size"], bytes.fromhex(checksum) if checksum else None)

        return self._run("read", name, get)

    def delete(self, names: Sequence[str]) -> None:
        """In as few requests as the store allows; a missing object is not an error."""

        def remove() -> None:
            try:
                obstore.delete(self._store, list(names))
            except FileNotFoundError:
                # Azure reports missing objects and may have left others.
                with ThreadPool(_DELETIONS, "seachange-delete") as pool:
                    for _ in pool.map(self._delete_one, names):
                        pass

        if names:
            self._run("delete", names[0], remove)

    def names(self, prefix: str = "") -> Iterator[str]:
        """All names that begin with the prefix, in one listing. Objects in folders below are those of others."""

        def listed() -> list[str]:
            # A prefix of the library ends at a slash.
            return [meta["path"] for batch in obstore.list(self._store) for meta in batch]

        yield from (name for name in self._run("list", "", listed) if name.startswith(prefix) and "/" not in name)

    def _delete_one(self, name: str) -> None:
        try:
            obstore.delete(self._store, name)
        except FileNotFoundError:
            return

    def _find(self, name: str) -> obstore.GetResult:
        """By HEAD; if it fails, by GET, because a refusal of HEAD has no text that says why: whether the object or its
        bucket is missing, whether credentials are wrong or have expired."""
        try:
            return obstore.get(self._store, name, options={"head": True})
        except (BaseError, FileNotFoundError) as problem:
            if _is_transient(str(problem)):
                raise
            return obstore.get(self._store, name, options={"range": (0, 1)})

    def _digest(self, name: str) -> bytes:
        return new_digest(self.read(name) or b"").digest()

    def _run(self, action: str, name: str, work: Callable[[], T]) -> T:
        """Repeats what the library itself has given up, such as a body that broke off."""
        with self._errors(action, name):
            for attempt in range(self._attempts - 1):
                try:
                    return work()
                except (PermissionDeniedError, UnauthenticatedError):
                    raise
                except BaseError as problem:
                    if not _is_transient(str(problem)):
                        raise
                    check_interrupt()
                    time.sleep(_PAUSE_SECONDS * 2**attempt)
            return work()

    @contextmanager
    def _errors(self, action: str, name: str) -> Iterator[None]:
        try:
            yield
        except (BaseError, FileNotFoundError, ValueError) as problem:
            # The library's text and its cause stay out of it: they quote the request.
            reason, remedy = _reason(problem)
            raise errors.StoreProblem(action=action, file=self._called(name), detail=reason, remedy=remedy) from None

    def _called(self, name: str) -> str:
        return f"{self.url}/{name}" if name else self.url


def _open(url: str, retries: int) -> obstore.store.ObjectStore:
    """Options that are not given here come from the environment of the library: AWS_..., AZURE_..., GOOGLE_..."""
    retry: Any = {"max_retries": retries, "retry_timeout": timedelta(minutes=3), "backoff": _BACKOFF}
    scheme, _, rest = url.partition("://")
    bucket, _, prefix = rest.partition("/")
    if scheme == "s3":
        options: Any = profile_options()
        client: Any = _CLIENT | _http_allowed(
            os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        )
        if "endpoint" in options:
            client = client | _http_allowed(options["endpoint"])
        return S3Store(
            bucket,
            prefix=prefix or None,
            client_options=client,
            retry_config=retry,
            credential_provider=credential_provider(),
            **options,
        )
    if scheme in ("abfs", "abfss"):
        container, _, host = bucket.partition("@")
        account: Any = {"account_name": host.partition(".")[0]} if host else {}
        client = _CLIENT | _http_allowed(
            "http://" if os.environ.get("AZURE_STORAGE_USE_EMULATOR") else os.environ.get("AZURE_STORAGE_ENDPOINT")
        )
        return AzureStore(container, prefix=prefix or None, client_options=client, retry_config=retry, **account)
    client = _CLIENT
    return GCSStore(bucket, prefix=prefix or None, client_options=client, retry_config=retry)


def _http_allowed(endpoint: str | None) -> dict[str, Any]:
    return {"allow_http": True} if endpoint and endpoint.startswith("http://") else {}


def _check_bucket(problem: FileNotFoundError) -> None:
    """A missing bucket is not a missing object."""
    if _reason(problem) != _UNKNOWN:
        raise problem


_UNKNOWN = ("the request failed", _ANY)


def _reason(problem: Exception) -> tuple[str, str]:
    """What has happened, and what to do."""
    text = str(problem)
    return next(((reason, remedy) for part, reason, remedy in _REASONS if part in text), _UNKNOWN)


def _is_transient(text: str) -> bool:
    return not any(f"status code: {code}" in text for code in (400, 401, 403, 404, 412))

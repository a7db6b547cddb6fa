"""A real server of Azure Blob Storage on a free port of this machine (Azurite).

Invariant: the server never outlives the process that started it.
"""

import base64
import hashlib
import hmac
import os
import subprocess
import time
from contextlib import suppress
from email.utils import formatdate
from http.client import HTTPConnection
from itertools import count
from pathlib import Path

from tests.support.patience import PATIENCE_S
from tests.support.postgres import find_free_port
from tests.support.s3 import HOST, die_with_parent

# The account that every Azurite has; its key is in its documentation.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_VERSION = "2021-08-06"
_numbers = count(1)


class AzuriteServer:
    """A context manager."""

    def __init__(self, program: Path) -> None:
        self.port = find_free_port()
        self._program = program

    def __enter__(self) -> "AzuriteServer":
        options = ["--silent", "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"]
        self._process = subprocess.Popen(
            [self._program, *options, "--blobHost", HOST, "--blobPort", str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - no thread is needed in the child
        )
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            with suppress(OSError):
                self._create_container("first")
                return self
            assert self._process.poll() is None, "azurite has ended"
            time.sleep(0.05)
        raise AssertionError("azurite does not answer")

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def environment(self, port: int) -> dict[str, str]:
        """What a program needs to reach the server, or a proxy in front of it."""
        return {
            "AZURE_STORAGE_ENDPOINT": f"http://{HOST}:{port}/{ACCOUNT}",
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
        }

    def create_place(self) -> str:
        """The URL of a new container."""
        name = f"container-{os.getpid()}-{next(_numbers)}"
        assert self._create_container(name) == 201
        return f"abfs://{name}@{ACCOUNT}.dfs.core.windows.net"

    def _create_container(self, name: str) -> int:
        """The status of the answer to a request that is signed with the account's key."""
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": _VERSION}
        signed = "".join(f"{key}:{value}\n" for key, value in sorted(headers.items()))
        text = "PUT\n" + "\n" * 11 + f"{signed}/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
        digest = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
        headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
        connection = HTTPConnection(HOST, self.port, timeout=PATIENCE_S)
        try:
            connection.request(
                "PUT", f"/{ACCOUNT}/{name}?restype=container", headers={**headers, "Content-Length": "0"}
            )
            return connection.getresponse().status
        finally:
            connection.close()

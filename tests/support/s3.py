"""A real S3 server on a free port of this machine (moto), and a proxy in front of it that does what networks do.

Invariant: the server never outlives the process that started it.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from ctypes import CDLL
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Protocol

from tests.support.patience import PATIENCE_S

HOST = "127.0.0.1"
_PR_SET_PDEATHSIG = 1
# The server wants a signature and does not verify it.
SIGNED = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=none"
# How often the proxy looks whether it is to end.
POLL_S = 0.01
_ADDRESS = re.compile(rb"Running on http://[0-9.]+:([0-9]+)")
_numbers = count(1)


def die_with_parent() -> None:
    CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def environment(port: int) -> dict[str, str]:
    """What a program needs to reach the server."""
    return {
        "AWS_ENDPOINT_URL": f"http://{HOST}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "secret-of-the-test",
        "AWS_REGION": "us-east-1",
    }


class StoreServer(Protocol):
    """A server of object stores."""

    port: int

    def environment(self, port: int) -> dict[str, str]:
        """What a program needs to reach the server, or a proxy in front of it."""

    def create_place(self) -> str:
        """The URL of a new bucket."""


class S3Server:
    """A context manager."""

    port = 0

    def __enter__(self) -> "S3Server":
        program = Path(sys.executable).with_name("moto_server")
        # The server chooses the port: one that was free before may be that of another server by now, which would
        # answer until it ends.
        self._process = subprocess.Popen(
            [program, "-H", HOST, "-p", "0"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - no thread is needed in the child
        )
        started = threading.Event()
        self._reader = threading.Thread(target=self._read_port, args=(started,), daemon=True)
        self._reader.start()
        assert started.wait(PATIENCE_S), "moto_server does not answer"
        assert self.port, "moto_server has ended"
        return self

    def _read_port(self, started: threading.Event) -> None:
        """Reads what the server says until it ends; first, after it has begun to listen, its address."""
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for line in lines:
                if not self.port and (found := _ADDRESS.search(line)):
                    self.port = int(found[1])
                    started.set()
        started.set()

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()

    @property
    def pid(self) -> int:
        return self._process.pid

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        connection = HTTPConnection(HOST, self.port, timeout=PATIENCE_S)
        try:
            connection.request(method, path, body, {"Authorization": SIGNED} | dict(headers or {}))
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def environment(self, port: int) -> dict[str, str]:
        return environment(port)

    def create_place(self) -> str:
        return f"s3://{self.create_bucket()}"

    def create_bucket(self) -> str:
        """The name of a new bucket."""
        name = f"bucket-{os.getpid()}-{next(_numbers)}"
        status, _ = self.request("PUT", f"/{name}")
        assert status == 200
        return name


@dataclass(slots=True)
class Faults:
    """What happens to the next requests: rules are tried in order, and each applies a number of times."""

    rules: list[tuple[str, Callable[["_Handler"], bool], int]] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    ranges: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, fault: str, method: str, times: int = 1, ending: str = "") -> None:
        """`fault` is throttle, expire, vanish (the bucket), conflict (with another PUT), reset, stall, overwrite
        (whatever the condition), lose (the answer), slow or cut (the body of the answer)."""

        def applies(handler: "_Handler") -> bool:
            return handler.command == method and handler.path.partition("?")[0].endswith(ending)

        with self.lock:
            self.rules.append((fault, applies, times))

    def take(self, handler: "_Handler") -> str | None:
        with self.lock:
            self.seen[handler.command] += 1
            self.ranges += "Range" in handler.headers
            for place, (fault, applies, times) in enumerate(self.rules):
                if applies(handler):
                    self.rules[place : place + 1] = [(fault, applies, times - 1)] if times > 1 else []
                    self.seen[fault] += 1
                    return fault
        return None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    faults: Faults
    target: int
    uploading: threading.Event
    release: threading.Event

    def log_message(self, *_: object) -> None:
        pass

    def _handle(self) -> None:
        fault = self.faults.take(self)
        length = int(self.headers.get("Content-Length") or 0)
        if fault == "throttle":
            self.rfile.read(length)
            self._refuse(503, "SlowDown")
            return
        if fault == "expire":
            self.rfile.read(length)
            self._refuse(400, "ExpiredToken")
            return
        if fault == "vanish":
            self.rfile.read(length)
            self._refuse(404, "NoSuchBucket")
            return
        if fault == "conflict":
            self.rfile.read(length)
            self._refuse(409, "ConditionalRequestConflict")
            return
        if fault == "reset":
            self.rfile.read(length // 2)
            self._break()
            return
        if fault == "stall":
            self.rfile.read(length // 2)
            self.uploading.set()
            self.release.wait(PATIENCE_S)
            self._break()
            return
        body = self.rfile.read(length)
        unsent = "if-none-match" if fault == "overwrite" else ""
        sent = {name: value for name, value in self.headers.items() if name.lower() != unsent}
        connection = HTTPConnection(HOST, self.target, timeout=PATIENCE_S)
        try:
            connection.request(self.command, self.path, body, sent)
            answer = connection.getresponse()
            content = answer.read()
            headers = [(k, v) for k, v in answer.getheaders() if k.lower() not in ("transfer-encoding", "connection")]
            if answer.chunked:
                headers.append(("Content-Length", str(len(content))))
        finally:
            connection.close()
        if fault == "lose":
            self._break()
        elif fault == "cut":
            self._answer(answer.status, headers, content[: len(content) // 2])
            self._break()
        elif fault == "slow":
            self._answer(answer.status, headers, b"")
            for start in range(0, len(content), 4096):
                self.wfile.write(content[start : start + 4096])
                time.sleep(0.001)
        else:
            self._answer(answer.status, headers, b"" if self.command == "HEAD" else content)

    def _refuse(self, status: int, code: str) -> None:
        content = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>Not now.</Message></Error>".encode()
        self._answer(status, [("Content-Length", str(len(content)))], b"" if self.command == "HEAD" else content)

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    def _break(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _handle  # noqa: N815 - as the server finds them

    def handle(self) -> None:
        with suppress(OSError, HTTPException):
            super().handle()


@dataclass(slots=True)
class FaultProxy:
    port: int
    faults: Faults
    # Set when a stalled upload has sent half of its body; it ends when `release` is set.
    uploading: threading.Event
    release: threading.Event


@contextmanager
def fault_proxy(server: StoreServer) -> Iterator[FaultProxy]:
    faults, uploading, release = Faults(), threading.Event(), threading.Event()
    names = {"faults": faults, "target": server.port, "uploading": uploading, "release": release}
    listener = ThreadingHTTPServer((HOST, 0), type("Handler", (_Handler,), names))
    listener.daemon_threads = True
    thread = threading.Thread(target=listener.serve_forever, args=(POLL_S,), daemon=True)
    thread.start()
    try:
        yield FaultProxy(listener.server_address[1], faults, uploading, release)
    finally:
        release.set()
        listener.shutdown()
        listener.server_close()
        thread.join()

"""A TCP proxy that loses a connection at a chosen request: before the server hears it, or before its answer is."""

import socket
import threading
from contextlib import suppress
from enum import Enum
from urllib.parse import urlsplit, urlunsplit

HOST = "127.0.0.1"
CHUNK_BYTES = 1 << 20


class Loss(Enum):
    REQUEST = "the request is never forwarded"
    REPLY = "the request is forwarded, the answer is swallowed"


class LossyProxy:
    """Watches for `mark` in what clients send; the connection that sends it is lost as often as was asked for."""

    def __init__(self, url: str, mark: bytes) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname or HOST, parts.port or 5432)
        self._marks = (mark, mark.hex().encode())
        self._losses: list[Loss] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server((HOST, 0))
        port = self._listener.getsockname()[1]
        self.url = urlunsplit(parts._replace(netloc=f"{parts.username}:{parts.password}@{HOST}:{port}"))
        self.lost = 0
        self._start(self._accept)

    def lose(self, *losses: Loss) -> None:
        with self._lock:
            self._losses.extend(losses)

    def close(self) -> None:
        self._listener.close()

    def _start(self, work, *arguments: object) -> None:
        threading.Thread(target=work, args=arguments, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(self._target)
                except OSError:
                    client.close()
                    continue
                deaf = threading.Event()
                self._start(self._forward_requests, client, server, deaf)
                self._start(self._forward_answers, client, server, deaf)

    def _forward_requests(self, client: socket.socket, server: socket.socket, deaf: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(CHUNK_BYTES):
                loss = self._next_loss(data)
                if loss is Loss.REQUEST:
                    break
                if loss is Loss.REPLY:
                    deaf.set()
                server.sendall(data)
        _close(client, server)

    def _forward_answers(self, client: socket.socket, server: socket.socket, deaf: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(CHUNK_BYTES):
                if deaf.is_set():
                    break
                client.sendall(data)
        _close(client, server)

    def _next_loss(self, data: bytes) -> Loss | None:
        if not any(mark in data for mark in self._marks):
            return None
        with self._lock:
            if not self._losses:
                return None
            self.lost += 1
            return self._losses.pop(0)


def _close(*sockets: socket.socket) -> None:
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()

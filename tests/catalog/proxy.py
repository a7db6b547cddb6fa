"""A TCP proxy that can lose a connection at the worst moment."""

import socket
import threading
from contextlib import suppress
from enum import Enum


class Cut(Enum):
    """At the next request: never forward it, or forward it and swallow the reply."""

    NEVER = "never"
    REQUEST = "request"
    REPLY = "reply"


class CuttingProxy:
    def __init__(self, host: str, port: int) -> None:
        self.cut = Cut.NEVER
        self._target = (host, port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._server.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                server = socket.create_connection(self._target)
                pair = (client, server)
                threading.Thread(target=self._requests, args=pair, daemon=True).start()
                threading.Thread(target=self._replies, args=pair, daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65_536):
                if self.cut is Cut.REQUEST:
                    self.cut = Cut.NEVER
                    break
                server.sendall(data)
        close(client, server)

    def _replies(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65_536):
                if self.cut is Cut.REPLY:
                    # The server has done the work; its answer is lost.
                    self.cut = Cut.NEVER
                    break
                client.sendall(data)
        close(client, server)


def close(*sockets: socket.socket) -> None:
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()

"""A server in this process, on a loop in a thread of its own."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.runtime.location import DataLocation
from seachange.server.auth import find_verifier, shared_verifier
from seachange.server.http import Monitor
from seachange.server.login import AuthConfig
from seachange.server.server import Server, ServerOptions
from tests.support.patience import PATIENCE_S

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Served:
    server: Server
    monitor: Monitor
    node: Node
    port: int
    loop: asyncio.AbstractEventLoop
    http_port: int

    @property
    def url(self) -> str:
        return f"postgresql://seachange@{HOST}:{self.port}/seachange"

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self.server.stop(), self.loop).result(PATIENCE_S)


@contextmanager
def serving(
    data: Path | DataLocation,
    passwords: dict[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
    connections: int = 50,
    grace: float = 5.0,
) -> Iterator[Served]:
    """Everybody is trusted unless there are passwords."""
    node = open_node(data)
    secret = node.parts.shared_secret()
    auth_config = AuthConfig({}, trust=True, secret=secret)
    if passwords is not None:
        verifiers = {user: shared_verifier(user, password, secret) for user, password in passwords.items()}
        auth_config = AuthConfig(verifiers, secret=secret, others=partial(find_verifier, node), follow=node.read_head)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="server-loop")
    thread.start()
    try:

        async def start() -> Served:
            server = Server(node, ServerOptions(HOST, 0, auth_config, tls, connections, grace))
            monitor = Monitor(node, server)
            return Served(server, monitor, node, await server.start(), loop, await monitor.start(HOST, 0))

        served = asyncio.run_coroutine_threadsafe(start(), loop).result(PATIENCE_S)
        try:
            yield served
        finally:
            served.stop()
            asyncio.run_coroutine_threadsafe(served.monitor.stop(), loop).result(PATIENCE_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        node.close()

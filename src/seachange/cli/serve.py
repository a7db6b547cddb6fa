"""Serve a database over PostgreSQL's protocol, to psql and all other clients. The node also runs the jobs of the
database. Stops at SIGTERM or SIGINT within --grace seconds: transactions have half of them to finish.

The superuser is seachange; its password is $SEACHANGE_PASSWORD, or a generated one that is stored in the data folder.
Other roles log in with the passwords of CREATE ROLE.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import ssl
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

import seachange
from seachange.cli.database import add_database_options, location_of, report_error, restrict_access
from seachange.cli.log_options import add_log_options, open_log
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.errors import Error
from seachange.model.schema.access import DEFAULT_ROLE
from seachange.model.schema.objects import DEFAULT_DATABASE
from seachange.runtime.clock import SYSTEM_CLOCK
from seachange.runtime.entropy import SYSTEM_ENTROPY
from seachange.runtime.garbage import freeze_loaded
from seachange.server.auth import find_verifier, load_context, shared_verifier
from seachange.server.http import Monitor
from seachange.server.login import AuthConfig
from seachange.server.server import GRACE_SECONDS, Server, ServerOptions

_US = 1_000_000
_LISTEN = "127.0.0.1:5433"
_HTTP = "127.0.0.1:8433"
Address = tuple[str, int]
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_PASSWORD_FILE = "password"
_PASSWORD_VARIABLE = "SEACHANGE_PASSWORD"
_PASSWORD_BYTES = 18
EXAMPLES = """examples:
  SEACHANGE_PASSWORD=secret seachange serve --data shop
  psql "postgresql://seachange:secret@127.0.0.1:5433/seachange"
  seachange serve --data shop --listen 127.0.0.1:6000 --trust
  seachange serve --data shop --listen 0.0.0.0:5433 --tls-cert server.crt --tls-key server.key
  seachange serve --data shop --catalog postgresql://localhost/shop --node west-1
"""


class Ending:
    """The shutdown of a server within its grace period.

    **Invariant:** the process ends within the grace period that begins with the signal. Work that did not stop by then
    ends with the process; the node's epoch is ended in the catalog first, so that other nodes do not wait for its
    expiry.
    """

    def __init__(self, grace_seconds: float) -> None:
        self._grace_us = round(grace_seconds * _US)
        # None: no signal has been received.
        self._deadline_us: int | None = None

    def begin(self) -> None:
        self._deadline_us = SYSTEM_CLOCK.steady_us() + self._grace_us

    def close(self, node: Node) -> None:
        """Closes the node before the deadline, or leaves it."""
        if not self._run(node.close):
            self.leave(node)

    def leave(self, node: Node) -> NoReturn:
        """Ends the process while statements or jobs are still running."""
        node.parts.log.warning("node exits with work that did not stop", node=node.name)
        node.parts.log.close()
        print(f"node {node.name} exits with work that did not stop", file=sys.stderr)
        with suppress(Error):
            self._run(node.abandon)
        sys.stdout.flush()
        sys.stderr.flush()
        # The interpreter and DuckDB would wait for threads that run a query.
        os._exit(0)

    def _run(self, work: Callable[[], None]) -> bool:
        """Runs it on a thread until the deadline; returns False if it is not done by then."""

        problems: list[Error] = []

        def attempt() -> None:
            try:
                work()
            except Error as problem:
                problems.append(problem)

        thread = threading.Thread(target=attempt, name="seachange-ending", daemon=True)
        thread.start()
        deadline_us = self._deadline_us
        thread.join(None if deadline_us is None else max(deadline_us - SYSTEM_CLOCK.steady_us(), 0) / _US)
        if problems:
            raise problems[0]
        return not thread.is_alive()


def configure(parser: argparse.ArgumentParser) -> None:
    add_database_options(parser)
    add_log_options(parser)
    parser.add_argument("--listen", type=_address, default=_LISTEN, metavar="HOST:PORT", help=f"default: {_LISTEN}")
    parser.add_argument(
        "--http",
        type=_http_address,
        metavar="[HOST:]PORT|off",
        help=f"console, health, metrics and the Iceberg catalog (default: {_HTTP}, if it is free)",
    )
    parser.add_argument("--http-tls", action="store_true", help="serve HTTP over TLS, with the same certificate")
    parser.add_argument("--node", metavar="NAME", help="the node's name (default: from host and process)")
    parser.add_argument("--trust", action="store_true", help="do not ask for a password; only on a loopback address")
    parser.add_argument("--tls-cert", type=Path, metavar="FILE", help="the TLS certificate (PEM)")
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="its key, if it is in another file")
    parser.add_argument("--require-tls", action="store_true", help="refuse unencrypted connections")
    parser.add_argument(
        "--group-access", action="store_true", help="if the folder is created, let its group read it (0750, files 0640)"
    )
    parser.add_argument(
        "--connections",
        type=_positive,
        metavar="N",
        help="maximum number of connections (default: max_connections, 200)",
    )
    parser.add_argument(
        "--grace",
        type=_seconds,
        default=GRACE_SECONDS,
        metavar="SECONDS",
        help=f"maximum time to stop after SIGTERM; transactions have half of it (default: {GRACE_SECONDS:g})",
    )


def run(arguments: argparse.Namespace) -> int:
    host, port = arguments.listen
    if arguments.trust and host not in _LOOPBACK:
        print("seachange serve: --trust is for a loopback address only, such as 127.0.0.1")
        return 2
    if arguments.require_tls and arguments.tls_cert is None:
        print("seachange serve: --require-tls needs a certificate, --tls-cert FILE")
        return 2
    if arguments.http_tls and arguments.tls_cert is None:
        print("seachange serve: --http-tls needs a certificate, --tls-cert FILE")
        return 2
    try:
        tls = load_context(arguments.tls_cert, arguments.tls_key) if arguments.tls_cert is not None else None
        location = location_of(arguments)
        restrict_access(location.local, arguments.group_access)
        log = open_log(arguments)
        node = open_node(location, arguments.catalog, arguments.node)
        node.parts.log = log
        try:
            auth_config = AuthConfig({}, trust=True, secret=node.parts.shared_secret())
            if not arguments.trust:
                auth_config = _guarded(node, auth_config.secret, location.local, host, port)
            options = ServerOptions(
                host, port, auth_config, tls, arguments.connections, arguments.grace, arguments.require_tls
            )
            ending = Ending(arguments.grace)
            asyncio.run(_serve(node, options, arguments.http, tls if arguments.http_tls else None, ending))
        except BaseException:
            node.close()
            raise
        ending.close(node)
        log.close()
    except Error as error:
        report_error(error)
        return 1
    return 0


async def _serve(
    node: Node, options: ServerOptions, http: Address | None, http_tls: ssl.SSLContext | None, ending: Ending
) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    server = Server(node, options)
    port = await server.start()
    monitor = Monitor(node, server)
    watched = await _watch(monitor, http, http_tls)
    node.jobs.takes_up = True
    node.jobs.wake()
    freeze_loaded()
    node.parts.log.info("node ready", node=node.name, listen=f"{options.host}:{port}", version=seachange.__version__)
    print(f"node {node.name} is ready on {options.host}:{port}", flush=True)
    print(watched, flush=True)
    await ended.wait()
    ending.begin()
    node.parts.log.info("node stops", node=node.name)
    print(f"node {node.name} stops", flush=True)
    if not await server.stop():
        ending.leave(node)
    await monitor.stop()


async def _watch(monitor: Monitor, http: Address | None, tls: ssl.SSLContext | None) -> str:
    """The status line. The default address may be taken, since several servers often run on one machine."""
    host, port = http if http is not None else _address(_HTTP)
    if not host:
        return "health and metrics over HTTP are off"
    try:
        scheme = "http" if tls is None else "https"
        return f"console, health and metrics on {scheme}://{_in_url(host)}:{await monitor.start(host, port, tls)}"
    except Error as problem:
        if http is not None:
            raise
        return f"health and metrics over HTTP are off: {problem}"


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _guarded(node: Node, secret: bytes, data: Path, host: str, port: int) -> AuthConfig:
    password = os.environ.get(_PASSWORD_VARIABLE)
    own = {DEFAULT_ROLE: shared_verifier(DEFAULT_ROLE, password or _kept_password(data, host, port), secret)}
    if password:
        node.parts.fixed_passwords = frozenset(own)
        return AuthConfig(own, secret=secret, others=partial(find_verifier, node), follow=node.read_head)
    return AuthConfig({}, secret=secret, others=partial(find_verifier, node, defaults=own), follow=node.read_head)


def _kept_password(data: Path, host: str, port: int) -> str:
    """The password in the data folder; if there is none, it is generated and shown once."""
    path = data / _PASSWORD_FILE
    if path.exists():
        return path.read_text(encoding="utf-8").strip()
    password = SYSTEM_ENTROPY.token(_PASSWORD_BYTES).hex()
    # For its owner only, even if the group may read the folder.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(password + "\n")
    print(f"postgresql://{DEFAULT_ROLE}:{quote(password)}@{_in_url(host)}:{port}/{DEFAULT_DATABASE}", flush=True)
    return password


def _http_address(text: str) -> Address:
    """A port alone is on the loopback address; off is an empty host."""
    if text == "off":
        return "", 0
    return _address(text if ":" in text else f"127.0.0.1:{text}")


def _address(text: str) -> Address:
    host, separator, port = text.rpartition(":")
    if not separator or not host or not port.isdecimal() or int(port) > 65_535:
        raise argparse.ArgumentTypeError(f"{text} is not HOST:PORT")
    return host.strip("[]"), int(port)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0")
    return seconds


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return int(text)

"""SCRAM-SHA-256 (RFC 5802, RFC 7677): client and server prove to each other that they know a password.

**Invariant:** a user that does not exist is challenged and refused like one that does: with a salt that is always the
same for the name, after the same work.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from seachange import errors
from seachange.engine.node.node import Node
from seachange.model.schema.scram import ITERATIONS, SALT_BYTES, make_verifier
from seachange.runtime.entropy import Entropy

MECHANISM = "SCRAM-SHA-256"
_NONCE_BYTES = 18


@dataclass(frozen=True, slots=True)
class Verifier:
    """The stored form of a password."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes


def read_verifier(text: str) -> Verifier:
    """Parses PostgreSQL's format, which the roles of the catalog use too."""
    _, numbers, keys = text.split("$")
    iterations, salt = numbers.split(":")
    stored, server = keys.split(":")
    return Verifier(base64.b64decode(salt), int(iterations), base64.b64decode(stored), base64.b64decode(server))


def shared_verifier(user: str, password: str, secret: bytes) -> Verifier:
    """The same on every node that has the password."""
    return read_verifier(make_verifier(password, _salt(user, secret)))


def mock_verifier(user: str, secret: bytes) -> Verifier:
    """The verifier of a user that does not exist: no password matches."""
    salt = _salt(user, secret)
    return Verifier(salt, ITERATIONS, _hmac(secret, salt), _hmac(secret, salt + b"server"))


def _salt(user: str, secret: bytes) -> bytes:
    return _hmac(secret, user.encode())[:SALT_BYTES]


def matches_password(verifier: Verifier, password: str) -> bool:
    """Whether it is the password, which the client has sent as it is."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), verifier.salt, verifier.iterations)
    stored = hashlib.sha256(_hmac(salted, b"Client Key")).digest()
    return hmac.compare_digest(stored, verifier.stored_key)


class Scram:
    """The server's side of one exchange."""

    def __init__(self, user: str, verifier: Verifier, is_real: bool, entropy: Entropy) -> None:
        self._user = user
        self._verifier = verifier
        self._is_real = is_real
        self._own_nonce = base64.b64encode(entropy.token(_NONCE_BYTES)).decode()
        self._first_bare = self._server_first = self._nonce = self._header = ""

    def begin(self, data: bytes) -> bytes:
        """From the client's first message to the server's."""
        text = _decode(data)
        flag, _, rest = text.partition(",")
        authorization, _, bare = rest.partition(",")
        if flag.startswith("p="):
            raise errors.ProtocolViolation(detail="channel binding was not offered")
        if flag not in ("n", "y"):
            raise _malformed()
        fields = _fields(bare)
        if "m" in fields or not fields.get("r"):
            raise _malformed()
        self._header = f"{flag},{authorization},"
        self._first_bare = bare
        self._nonce = fields["r"] + self._own_nonce
        salt = base64.b64encode(self._verifier.salt).decode()
        self._server_first = f"r={self._nonce},s={salt},i={self._verifier.iterations}"
        return self._server_first.encode()

    def finish(self, data: bytes) -> bytes:
        """From the client's proof to the server's; raises InvalidPassword."""
        text = _decode(data)
        without_proof, _, _ = text.rpartition(",p=")
        fields = _fields(text)
        try:
            proof = base64.b64decode(fields.get("p", ""), validate=True)
            header = base64.b64decode(fields.get("c", ""), validate=True)
        except (binascii.Error, ValueError):
            raise _malformed() from None
        if header != self._header.encode() or len(proof) != hashlib.sha256().digest_size:
            raise _malformed()
        message = ",".join((self._first_bare, self._server_first, without_proof)).encode()
        signature = _hmac(self._verifier.stored_key, message)
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        fits = hmac.compare_digest(hashlib.sha256(client_key).digest(), self._verifier.stored_key)
        fits &= hmac.compare_digest(fields.get("r", "").encode(), self._nonce.encode())
        if not fits or not self._is_real:
            raise errors.InvalidPassword(user=self._user)
        return b"v=" + base64.b64encode(_hmac(self._verifier.server_key, message))


def _hmac(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")


def _fields(text: str) -> dict[str, str]:
    """Attributes and their values; a repeated attribute is an error."""
    parts = [part.partition("=") for part in text.split(",")]
    fields = {name: value for name, sign, value in parts if sign}
    if len(fields) != len(parts):
        raise _malformed()
    return fields


def _decode(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise _malformed() from None


def _malformed() -> errors.Error:
    return errors.ProtocolViolation(detail="a malformed SCRAM message")


# The passwords of the roles in the catalog, as the node knows them now.
#
# **Invariant:** a login that arrives after ALTER ROLE or DROP ROLE has returned, on any node, is checked against the
# new state: the node reads the catalog's head before it asks for the password, and again before the session begins.
def find_verifier(node: Node, user: str, defaults: Mapping[str, Verifier] = MappingProxyType({})) -> Verifier | None:
    """None if the role cannot log in: it has no password, here or in `defaults`, or its password has expired."""
    role = node.epoch.schemas.newest.roles.get(user)
    if role is None:
        return defaults.get(user)
    if role.valid_until_us is not None and role.valid_until_us <= node.parts.clock.wall_us():
        return None
    return defaults.get(user) if role.password is None else read_verifier(role.password)


def load_context(certificate: Path, key: Path | None) -> ssl.SSLContext:
    """`key` None: it is in the same file."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Renegotiation is not supported.
    context.options |= ssl.OP_NO_RENEGOTIATION
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as problem:
        raise errors.InputOutputError(action="load the certificate", file=certificate, detail=problem) from problem
    return context

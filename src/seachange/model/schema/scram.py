"""SCRAM-SHA-256 verifiers, as PostgreSQL stores passwords: they do not reveal the password."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re

ITERATIONS = 4096
SALT_BYTES = 16
_VERIFIER = re.compile(r"SCRAM-SHA-256\$(\d+):([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]+):([A-Za-z0-9+/=]+)")


def is_verifier(text: str) -> bool:
    return _VERIFIER.fullmatch(text) is not None


def make_verifier(password: str, salt: bytes, iterations: int = ITERATIONS) -> str:
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)
    stored = hashlib.sha256(_sign(salted, b"Client Key")).digest()
    server = _sign(salted, b"Server Key")
    return f"SCRAM-SHA-256${iterations}:{_text(salt)}${_text(stored)}:{_text(server)}"


def _sign(key: bytes, text: bytes) -> bytes:
    return hmac.new(key, text, hashlib.sha256).digest()


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()

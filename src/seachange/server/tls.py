"""The TLS context: the server's certificate and its key."""

from __future__ import annotations

import ssl
from pathlib import Path

from seachange import errors


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

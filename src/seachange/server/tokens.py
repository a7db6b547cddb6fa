"""Access tokens: what a role gets for its password, and sends with every request after that.

**Invariant:** a token is good for as long as the password that it was given for: a request with it is refused once the
role was dropped, may not log in any more, or has another password. Only digests of tokens are kept.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass

from seachange.runtime.clock import Clock
from seachange.runtime.entropy import Entropy
from seachange.server.auth import Verifier, matches_password, mock_verifier
from seachange.server.login import AuthConfig

TOKEN_SECONDS = 3_600
# Above this number, the oldest tokens are forgotten.
TOKENS_MAX = 10_000
_TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True)
class _Holder:
    user: str
    # None: everyone is trusted.
    verifier: Verifier | None
    expires_us: int


class Tokens:
    """Used by several threads."""

    def __init__(self, auth_config: AuthConfig, clock: Clock, entropy: Entropy) -> None:
        self._auth_config = auth_config
        self._clock = clock
        self._entropy = entropy
        self._lock = threading.Lock()
        self._holders: OrderedDict[bytes, _Holder] = OrderedDict()

    def issue(self, user: str, password: str) -> str | None:
        """A new token; None if the password is wrong. A user that does not exist takes as long as one that does."""
        verifier = None
        if not self._auth_config.trust:
            verifier = self._auth_config.find(user)
            checked = verifier or mock_verifier(user, self._auth_config.secret)
            if not matches_password(checked, password) or verifier is None:
                return None
        token = self._entropy.token(_TOKEN_BYTES).hex()
        expires_us = self._clock.steady_us() + TOKEN_SECONDS * 1_000_000
        with self._lock:
            self._holders[_digest(token)] = _Holder(user, verifier, expires_us)
            while len(self._holders) > TOKENS_MAX:
                self._holders.popitem(last=False)
        return token

    def find_user(self, token: str) -> str | None:
        """The role of a token; None if it is not, or no longer, valid."""
        digest = _digest(token)
        with self._lock:
            holder = self._holders.get(digest)
        if holder is None:
            return None
        is_valid = self._clock.steady_us() < holder.expires_us
        if not self._auth_config.trust:
            is_valid &= self._auth_config.find(holder.user) == holder.verifier
        if not is_valid:
            with self._lock:
                self._holders.pop(digest, None)
        return holder.user if is_valid else None


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()

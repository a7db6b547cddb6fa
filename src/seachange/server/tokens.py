"""Access tokens: what a role gets for its password, and sends with every request after that.

**Invariant:** a token is good for as long as the password that it was given for: a request with it is refused once the
role was dropped, may not log in any more, or has another password.

**Invariant:** a token that one node has issued is good on every node of the database. It is signed with the secret of
the database and the stored form of the password: no node remembers tokens, and neither alone is enough to make one.
"""

from __future__ import annotations

import hmac

from seachange.runtime.clock import Clock
from seachange.server.auth import Verifier, matches_password, mock_verifier
from seachange.server.login import AuthConfig

TOKEN_SECONDS = 3_600
_US = 1_000_000
_PARTS = 3


class Tokens:
    """`purpose` keeps the tokens of different pages apart."""

    def __init__(self, auth_config: AuthConfig, clock: Clock, purpose: str = "token") -> None:
        self._auth_config = auth_config
        self._clock = clock
        self._purpose = purpose.encode()

    def issue(self, user: str, password: str) -> str | None:
        """A new token; None if the password is wrong. A user that does not exist takes as long as one that does."""
        verifier = self._find(user)
        if not self._auth_config.trust:
            checked = verifier or mock_verifier(user, self._auth_config.secret)
            if not matches_password(checked, password) or verifier is None:
                return None
        ends = self._clock.wall_us() // _US + TOKEN_SECONDS
        claim = f"{ends}.{user.encode().hex()}"
        return f"{claim}.{self._sign(claim, verifier)}"

    def find_user(self, token: str) -> str | None:
        """The role of a token; None if it is not, or no longer, valid."""
        parts = token.split(".")
        if not token.isascii() or len(parts) != _PARTS:
            return None
        ends, name, signature = parts
        try:
            user = bytes.fromhex(name).decode()
        except ValueError:
            return None
        verifier = self._find(user)
        if verifier is None and not self._auth_config.trust:
            return None
        if not hmac.compare_digest(self._sign(f"{ends}.{name}", verifier), signature):
            return None
        # Nothing unsigned is parsed as a number.
        return user if self._clock.wall_us() < int(ends) * _US else None

    def _find(self, user: str) -> Verifier | None:
        return None if self._auth_config.trust else self._auth_config.find(user)

    def _sign(self, claim: str, verifier: Verifier | None) -> str:
        """Where everyone is trusted there is no verifier, and a signature that is good only there."""
        stored = b"" if verifier is None else verifier.salt + verifier.stored_key + verifier.server_key
        key = hmac.digest(self._auth_config.secret, self._purpose + stored, "sha256")
        return hmac.digest(key, claim.encode(), "sha256").hex()

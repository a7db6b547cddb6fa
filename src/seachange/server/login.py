"""Start-up and authentication, as pure steps from messages to responses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from seachange import errors
from seachange.model.schema.objects import DEFAULT_DATABASE
from seachange.runtime.entropy import Entropy
from seachange.server import messages as m
from seachange.server.auth import MECHANISM, Scram, Verifier, mock_verifier

_OPTION = re.compile(r"(?:-c\s*|--)([A-Za-z_.]+)=((?:\\.|\S)*)\s*")
# Start-up parameters that are not settings.
_ABOUT = frozenset({"user", "database", "options", "replication"})


@dataclass(frozen=True, slots=True)
class AuthConfig:
    """Authentication: users with their passwords, the roles of the catalog (`others`), or everyone if `trust`. `follow`
    reads the catalog up to its head, which may take a while."""

    verifiers: Mapping[str, Verifier]
    trust: bool = False
    # The secret of the database, for tokens and for the salts of users that do not exist.
    secret: bytes = b""
    others: Callable[[str], Verifier | None] | None = None
    follow: Callable[[], object] | None = None

    def find(self, user: str) -> Verifier | None:
        found = self.verifiers.get(user)
        return self.others(user) if found is None and self.others is not None else found


@dataclass(slots=True)
class Login:
    auth_config: AuthConfig
    entropy: Entropy
    user: str = ""
    database: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    is_done: bool = False
    _verifier: Verifier | None = None
    _scram: Scram | None = None
    _is_begun: bool = False

    def start(self, startup: m.Startup) -> bytes:
        if startup.major != m.PROTOCOL_MAJOR:
            raise errors.UnknownProtocol(version=f"{startup.major}.{startup.minor}")
        parameters = startup.parameters
        self.user = parameters.get("user", "")
        if not self.user:
            raise errors.InvalidAuthorization(detail="no PostgreSQL user name specified in startup packet")
        if parameters.get("replication", "false") not in ("false", "off", "no", "0"):
            raise errors.FeatureNotSupported(feature="a replication connection", instead="")
        self.database = parameters.get("database") or DEFAULT_DATABASE
        unknown = [name for name in parameters if name.startswith("_pq_.")]
        self.settings = read_options(parameters.get("options", "")) | {
            name.lower(): value for name, value in parameters.items() if name not in _ABOUT and name not in unknown
        }
        answer = m.negotiate(0, unknown) if startup.minor or unknown else b""
        if self.auth_config.trust:
            self.is_done = True
            return answer + m.AUTHENTICATED
        self._verifier = self.auth_config.find(self.user)
        is_real = self._verifier is not None
        verifier = self._verifier or mock_verifier(self.user, self.auth_config.secret)
        self._scram = Scram(self.user, verifier, is_real, self.entropy)
        return answer + m.sasl_start([MECHANISM])

    def answer(self, frame: m.MessageFrame) -> bytes:
        if frame.kind != b"p" or self._scram is None:
            raise errors.ProtocolViolation(detail=f"a message of kind {frame.kind!r} before authentication")
        if not self._is_begun:
            self._is_begun = True
            first = m.read_sasl_start(frame.body)
            if first.mechanism != MECHANISM or first.data is None:
                raise errors.ProtocolViolation(detail=f"{MECHANISM} is the only mechanism")
            return m.sasl_continue(self._scram.begin(first.data))
        last = m.sasl_final(self._scram.finish(frame.body))
        self.is_done = True
        return last + m.AUTHENTICATED

    def check_current(self) -> None:
        """Raises InvalidPassword if the password was changed during authentication."""
        if not self.auth_config.trust and self.auth_config.find(self.user) != self._verifier:
            raise errors.InvalidPassword(user=self.user)


def read_options(text: str) -> dict[str, str]:
    """Parses the `options` start-up parameter.

    >>> read_options("-c statement_timeout=5s --search_path=a,b")
    {'statement_timeout': '5s', 'search_path': 'a,b'}
    """
    found: dict[str, str] = {}
    position = 0
    text = text.strip()
    while position < len(text):
        match = _OPTION.match(text, position)
        if match is None:
            raise errors.InvalidSetting(name="options", value=text)
        found[match.group(1).lower()] = re.sub(r"\\(.)", r"\1", match.group(2))
        position = match.end()
    return found

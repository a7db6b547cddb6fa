"""Who uses the console: log-in, the cookie of a session, and proof that a request comes from the console's own page.

**Invariant:** the cookie is out of reach of scripts and is not sent with requests that other sites cause (HttpOnly,
SameSite=Strict). A request that changes something also carries a value that only the console's own page can read.
"""

from __future__ import annotations

import hmac
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from seachange.server.http_message import HttpRequest
from seachange.server.tokens import TOKEN_SECONDS

COOKIE = "seachange_console"
PROOF_HEADER = "x-seachange-proof"
_OWN_SITES = frozenset({"same-origin", "none"})
# What a browser may load for the console's pages, and who may show them in a frame.
SECURITY_HEADERS = (
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)


def token_of(request: HttpRequest) -> str:
    """The token in the cookie; empty if there is none."""
    cookies: SimpleCookie = SimpleCookie()
    try:
        cookies.load(request.headers.get("cookie", ""))
    except CookieError:
        return ""
    found = cookies.get(COOKIE)
    return found.value if found is not None else ""


def set_cookie(token: str, is_secure: bool) -> tuple[str, str]:
    secure = "; Secure" if is_secure else ""
    return "Set-Cookie", f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict; Max-Age={TOKEN_SECONDS}{secure}"


def clear_cookie() -> tuple[str, str]:
    return "Set-Cookie", f"{COOKIE}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"


def proof_of(token: str) -> str:
    """What a page must send with changes: made from the cookie, which no page can read."""
    return hmac.digest(token.encode(), b"seachange console", "sha256").hex()


def is_proven(request: HttpRequest, token: str) -> bool:
    return hmac.compare_digest(proof_of(token).encode(), request.headers.get(PROOF_HEADER, "").encode())


def is_from_own_site(request: HttpRequest) -> bool:
    """Whether a browser says that its request was caused by a page of this server, or by no page. Programs that are no
    browsers say nothing."""
    if request.headers.get("sec-fetch-site", "same-origin") not in _OWN_SITES:
        return False
    origin = request.headers.get("origin")
    try:
        return origin is None or urlsplit(origin).netloc == request.headers.get("host", "")
    except ValueError:
        return False

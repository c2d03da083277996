"""Cookies: the session, and the reader's choices. Also the CSRF token, and where a form may come from.

Invariants:
- the session's cookie is HttpOnly and SameSite=Lax, and Secure with a `__Host-` name over TLS;
- an action needs three things at once: the cookie, the token that only our pages contain, and an `Origin` that is this
  server. The token is derived from the session's secret, so it is stored nowhere.
"""

import hmac
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import SplitResult, urlsplit

SESSION: Final = "tera_session"
LANGUAGE: Final = "tera_language"
THEME: Final = "tera_theme"
FLASH: Final = "tera_flash"
OIDC: Final = "tera_oidc"
"""A sign-in by an identity provider, encrypted."""
CHOICE_SECONDS: Final = 365 * 86_400
_SESSION_SECONDS: Final = 86_400
_FLASH_SECONDS: Final = 60
_OIDC_SECONDS: Final = 600
_LIFE: Final[Mapping[str, int]] = {SESSION: _SESSION_SECONDS, FLASH: _FLASH_SECONDS, OIDC: _OIDC_SECONDS}
_HOST: Final = "__Host-"
_COOKIE_BYTES_MAX: Final = 8192


def parse_cookies(header: str, *, secure: bool = False) -> Mapping[str, str]:
    """Over TLS only cookies with the prefix count: another server of the same domain cannot set those."""
    try:
        found = SimpleCookie(header[:_COOKIE_BYTES_MAX])
    except CookieError:
        return {}
    return {
        name.removeprefix(_HOST): morsel.value
        for name, morsel in found.items()
        if name.startswith(_HOST) or not secure
    }


def cookie_header(name: str, value: str, *, secure: bool) -> str:
    """The `Set-Cookie` header. An empty value removes the cookie."""
    life = _LIFE.get(name, CHOICE_SECONDS) if value else 0
    shown = f"{_HOST}{name}" if secure else name
    mark = "; Secure" if secure else ""
    return f"{shown}={value}; Path=/; Max-Age={life}; HttpOnly; SameSite=Lax{mark}"


def csrf_token(secret: str) -> str:
    return hmac.digest(secret.encode(), b"csrf", "sha256").hex()[:32]


def is_csrf_token(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(), csrf_token(secret).encode())


def is_own_origin(origin: str, host: str, fetch_site: str) -> bool:
    """Whether a form was sent from a page of this server. Browsers send `Origin` with every POST."""
    if fetch_site not in ("", "same-origin"):
        return False
    return bool(host) and parts_of(origin).netloc.lower() == host.lower()


def parts_of(address: str) -> SplitResult:
    """The parts of an address that a browser sent. Nonsense has none."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")

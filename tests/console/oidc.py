"""A console with an identity provider, and a browser that follows its redirections."""

import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec
from tests.api.asking import SETTINGS
from tests.console.visiting import ConsoleServer, Visited, copied_console
from tests.fakes.identity_provider import CLIENT, SECRET, FakeIdentityProvider

RETURN = "/console/sign-in/oidc/return"


@contextmanager
def with_provider(
    home: Path, folder: Path, **more: Any
) -> Iterator[tuple[ConsoleServer, FakeIdentityProvider]]:
    """A copy of a furnished console that signs in with a provider."""
    secret = folder / "secret"
    secret.write_text(SECRET)
    console_url = "http://localhost:8372"
    with FakeIdentityProvider(console_url + RETURN) as provider:
        settings = msgspec.structs.replace(
            SETTINGS,
            console_url=console_url,
            oidc_issuer=provider.issuer,
            oidc_client_id=CLIENT,
            oidc_client_secret_file=str(secret),
            oidc_name="Lab",
            **more,
        )
        server = copied_console(home, folder / "server", settings)
        try:
            yield server, provider
        finally:
            server.close()


class OidcBrowser:
    """Keeps cookies, and types an e-mail address at the provider."""

    def __init__(self, console: ConsoleServer, session: str = "") -> None:
        self.console = console
        self.cookies = {"tera_session": session} if session else {}

    def get(self, target: str) -> Visited:
        return self._kept(self.console.get(target, cookie=self._header()))

    def post(self, target: str, form: dict[str, str]) -> Visited:
        headers = {"cookie": self._header()}
        return self._kept(self.console.post(target, form=form, headers=headers))

    def at_provider(self, email: str, start: str = "/console/sign-in/oidc") -> str:
        """Start, sign in at the provider, and return the address that it sends the browser to."""
        sent = self.get(start).header("location")
        fields = {**dict(parse_qsl(urlsplit(sent).query)), "email": email}
        address = sent.partition("?")[0]
        opener = urllib.request.build_opener(_Stay)
        try:
            opener.open(address, urlencode(fields).encode(), timeout=10)
        except urllib.error.HTTPError as error:
            parts = urlsplit(error.headers["Location"])  # the provider refused if there is none
            return f"{parts.path}?{parts.query}"
        raise AssertionError("the provider did not send the browser back")

    def sign_in(self, email: str, start: str = "/console/sign-in/oidc") -> Visited:
        return self.get(self.at_provider(email, start))

    @property
    def session(self) -> str:
        return self.cookies.get("tera_session", "")

    def _header(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self.cookies.items())

    def _kept(self, page: Visited) -> Visited:
        self.cookies = {name: value for name, value in {**self.cookies, **page.cookies}.items() if value}
        return page


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *words: Any) -> None:
        return None

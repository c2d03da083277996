"""Sites, for operators."""

from teraflock.client.noun import Noun
from teraflock.client.transport import Method
from teraflock.wire.site import SiteAnswer, SiteCheckAnswer, SiteList, SiteRequest


class Sites(Noun):
    in_project = False

    def list(self) -> tuple[SiteAnswer, ...]:
        return self._get(SiteList, "sites").items

    def get(self, name: str) -> SiteAnswer:
        return self._get(SiteAnswer, "sites", name)

    def add(self, request: SiteRequest) -> SiteAnswer:
        return self._create(SiteAnswer, "sites", body=request)

    def remove(self, name: str) -> None:
        self._send("DELETE", "sites", name)

    def check(self, name: str) -> SiteCheckAnswer:
        return self._act("POST", SiteCheckAnswer, "sites", name, "check")

    def allow(self, name: str, organisation: str, *, may: bool) -> SiteAnswer:
        method: Method = "PUT" if may else "DELETE"
        return self._act(method, SiteAnswer, "sites", name, "organisations", organisation)

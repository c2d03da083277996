"""Sites, for operators."""

from teraflock.client.transport import Transport, path_of
from teraflock.wire.site import SiteAnswer, SiteCheckAnswer, SiteList, SiteRequest


class Sites(Transport):
    def sites(self) -> tuple[SiteAnswer, ...]:
        return self.get(path_of("sites"), SiteList).items

    def site(self, name: str) -> SiteAnswer:
        return self.get(path_of("sites", name), SiteAnswer)

    def add_site(self, request: SiteRequest) -> SiteAnswer:
        return self.create(path_of("sites"), SiteAnswer, request)

    def remove_site(self, name: str) -> None:
        self.request("DELETE", path_of("sites", name))

    def check_site(self, name: str) -> SiteCheckAnswer:
        return self.act("POST", path_of("sites", name, "check"), SiteCheckAnswer)

    def allow_site(self, name: str, organisation: str, *, may: bool) -> SiteAnswer:
        method = "PUT" if may else "DELETE"
        return self.act(method, path_of("sites", name, "organisations", organisation), SiteAnswer)

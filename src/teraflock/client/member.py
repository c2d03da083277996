"""Members of an organisation and their roles."""

from teraflock.client.noun import PAGE, Noun, pages
from teraflock.wire.member import MemberAnswer, MemberPage, MemberRequest, RoleChange


class Members(Noun):
    in_project = False

    def page(self, *, organisation: str = "", after: str = "", limit: int = PAGE) -> MemberPage:
        return self._get(MemberPage, "members", organisation=organisation, after=after, limit=limit)

    def list(self, *, organisation: str = "") -> tuple[MemberAnswer, ...]:
        return pages(lambda after: self.page(organisation=organisation, after=after))

    def add(
        self, request: MemberRequest, *, organisation: str = "", idempotency_key: str = ""
    ) -> MemberAnswer:
        return self._create(
            MemberAnswer, "members", body=request, idempotency_key=idempotency_key, organisation=organisation
        )

    def set_role(self, member: str, change: RoleChange) -> MemberAnswer:
        return self._act("PUT", MemberAnswer, "members", member, "role", body=change)

    def remove(self, member: str) -> None:
        self._send("DELETE", "members", member)

"""Organisations, projects, members, keys, quotas, the audit log."""

from typing import Final

from teraflock.client.transport import Transport, pages, path_of
from teraflock.wire.announcement import AnnouncementAnswer, AnnouncementList, AnnouncementRequest
from teraflock.wire.audit import AuditPage
from teraflock.wire.health import HealthAnswer
from teraflock.wire.key import KeyAnswer, KeyMade, KeyPage, KeyRequest
from teraflock.wire.member import MemberAnswer, MemberPage, MemberRequest, RoleChange
from teraflock.wire.organisation import OrganisationMade, OrganisationPage, OrganisationRequest
from teraflock.wire.project import ProjectAnswer, ProjectPage, ProjectRequest
from teraflock.wire.quota import OrganisationQuotaShape, OrganisationUsage, QuotaShape, UsageAnswer
from teraflock.wire.whoami import WhoAmI

PAGE: Final = 200


class Tenants(Transport):
    def health(self) -> HealthAnswer:
        return self.get(path_of("health"), HealthAnswer)

    def whoami(self) -> WhoAmI:
        return self.get(path_of("whoami"), WhoAmI)

    def organisations(self, *, after: str = "", limit: int = PAGE) -> OrganisationPage:
        return self.get(path_of("organisations"), OrganisationPage, after=after, limit=limit)

    def make_organisation(
        self, request: OrganisationRequest, *, idempotency_key: str = ""
    ) -> OrganisationMade:
        return self.create(
            path_of("organisations"), OrganisationMade, request, idempotency_key=idempotency_key
        )

    def projects(self, *, organisation: str = "", after: str = "", limit: int = PAGE) -> ProjectPage:
        return self.get(path_of("projects"), ProjectPage, organisation=organisation, after=after, limit=limit)

    def all_projects(self, *, organisation: str = "") -> list[ProjectAnswer]:
        return pages(lambda after: self.projects(organisation=organisation, after=after))

    def show_project(self, ref: str) -> ProjectAnswer:
        return self.get(path_of("projects", ref), ProjectAnswer)

    def make_project(
        self, request: ProjectRequest, *, organisation: str = "", idempotency_key: str = ""
    ) -> ProjectAnswer:
        path = path_of("projects")
        return self.create(
            path, ProjectAnswer, request, idempotency_key=idempotency_key, organisation=organisation
        )

    def delete_project(self, ref: str) -> None:
        return self.act("DELETE", path_of("projects", ref), type(None))

    def set_quota(self, ref: str, quota: QuotaShape) -> ProjectAnswer:
        return self.act("PUT", path_of("projects", ref, "quota"), ProjectAnswer, quota)

    def usage(self, ref: str) -> UsageAnswer:
        return self.get(path_of("projects", ref, "usage"), UsageAnswer)

    def organisation_usage(self, ref: str) -> OrganisationUsage:
        return self.get(path_of("organisations", ref, "usage"), OrganisationUsage)

    def set_organisation_quota(self, ref: str, quota: OrganisationQuotaShape) -> OrganisationUsage:
        return self.act("PUT", path_of("organisations", ref, "quota"), OrganisationUsage, quota)

    def members(self, *, organisation: str = "", after: str = "", limit: int = PAGE) -> MemberPage:
        return self.get(path_of("members"), MemberPage, organisation=organisation, after=after, limit=limit)

    def all_members(self, *, organisation: str = "") -> list[MemberAnswer]:
        return pages(lambda after: self.members(organisation=organisation, after=after))

    def add_member(
        self, request: MemberRequest, *, organisation: str = "", idempotency_key: str = ""
    ) -> MemberAnswer:
        path = path_of("members")
        return self.create(
            path, MemberAnswer, request, idempotency_key=idempotency_key, organisation=organisation
        )

    def set_role(self, member: str, change: RoleChange) -> MemberAnswer:
        return self.act("PUT", path_of("members", member, "role"), MemberAnswer, change)

    def remove_member(self, member: str) -> None:
        return self.act("DELETE", path_of("members", member), type(None))

    def keys(self, *, after: str = "", limit: int = PAGE) -> KeyPage:
        return self.get(path_of("keys"), KeyPage, after=after, limit=limit)

    def all_keys(self) -> list[KeyAnswer]:
        return pages(lambda after: self.keys(after=after))

    def make_key(self, request: KeyRequest, *, idempotency_key: str = "") -> KeyMade:
        return self.create(path_of("keys"), KeyMade, request, idempotency_key=idempotency_key)

    def revoke_key(self, key: str) -> KeyAnswer:
        return self.act("DELETE", path_of("keys", key), KeyAnswer)

    def announcements(self) -> tuple[AnnouncementAnswer, ...]:
        return self.get(path_of("announcements"), AnnouncementList).items

    def make_announcement(
        self, request: AnnouncementRequest, *, idempotency_key: str = ""
    ) -> AnnouncementAnswer:
        path = path_of("announcements")
        return self.create(path, AnnouncementAnswer, request, idempotency_key=idempotency_key)

    def remove_announcement(self, id: str) -> None:
        return self.act("DELETE", path_of("announcements", id), type(None))

    def audit(self, *, organisation: str = "", after: str = "", limit: int = PAGE) -> AuditPage:
        return self.get(path_of("audit"), AuditPage, organisation=organisation, after=after, limit=limit)

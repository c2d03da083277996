"""Quotas of projects and organisations, and what they use."""

from teraflock.client.noun import Noun
from teraflock.wire.project import ProjectAnswer
from teraflock.wire.quota import OrganisationQuotaShape, OrganisationUsage, QuotaShape, UsageAnswer


class Quotas(Noun):
    in_project = False

    def usage(self, project: str) -> UsageAnswer:
        """What a project uses, and its quota."""
        return self._get(UsageAnswer, "projects", project, "usage")

    def set(self, project: str, quota: QuotaShape) -> ProjectAnswer:
        return self._act("PUT", ProjectAnswer, "projects", project, "quota", body=quota)

    def organisation_usage(self, organisation: str) -> OrganisationUsage:
        return self._get(OrganisationUsage, "organisations", organisation, "usage")

    def set_organisation(self, organisation: str, quota: OrganisationQuotaShape) -> OrganisationUsage:
        return self._act("PUT", OrganisationUsage, "organisations", organisation, "quota", body=quota)

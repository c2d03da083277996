"""Organisations, projects, members, keys and audit rows on the wire."""

from msgspec.structs import asdict

from teraflock.catalog.cards import cards_by_id
from teraflock.catalog.names import find_cards
from teraflock.network.rules import subnet
from teraflock.tenant.model import (
    Actor,
    ApiKey,
    AuditRow,
    MadeKey,
    MadeOrganisation,
    Member,
    Organisation,
    OrganisationQuota,
    Project,
    Quota,
)
from teraflock.tenant.quota.rules import Amounts
from teraflock.wire.tenant import (
    AuditAnswer,
    KeyAnswer,
    KeyMade,
    MemberAnswer,
    OrganisationAnswer,
    OrganisationMade,
    OrganisationQuotaShape,
    OrganisationUsage,
    ProjectAnswer,
    QuotaShape,
    UsageAnswer,
    WhoAmI,
)


def quota_from(shape: QuotaShape) -> Quota:
    """A card may be named as anywhere: a name that means several limits each of them. One nobody knows is refused."""
    return Quota(**{**asdict(shape), "gpus": _gpus_from(shape)})


def organisation_quota_from(shape: OrganisationQuotaShape) -> OrganisationQuota:
    return OrganisationQuota(**{**asdict(shape), "gpus": _gpus_from(shape)})


def _gpus_from(shape: QuotaShape) -> dict[str, int]:
    return {id: limit for name, limit in shape.gpus.items() for id in _cards_meant(name)}


def _cards_meant(name: str) -> list[str]:
    card, _, profile = name.partition(":")  # a slice is named by its card and its profile
    if card in cards_by_id():
        return [name]
    return [f"{each.id}:{profile}" if profile else each.id for each in find_cards(card)]


def quota_shape(quota: Quota) -> QuotaShape:
    return QuotaShape(**asdict(quota))


def usage_answer(used: Amounts, quota: Quota, whole: OrganisationUsage | None) -> UsageAnswer:
    return UsageAnswer(
        instances=used.instances,
        vcpus=used.vcpus,
        ram_bytes=used.ram_bytes,
        disk_bytes=used.disk_bytes,
        images_bytes=used.images_bytes,
        gpus=used.gpus,
        quota=quota_shape(quota),
        organisation=whole,
    )


def organisation_usage(
    organisation: Organisation, used: Amounts, quota: OrganisationQuota
) -> OrganisationUsage:
    return OrganisationUsage(
        id=organisation.id,
        name=organisation.name,
        **asdict(used),
        quota=OrganisationQuotaShape(**asdict(quota)),
    )


def organisation_answer(organisation: Organisation) -> OrganisationAnswer:
    return OrganisationAnswer(
        id=organisation.id,
        name=organisation.name,
        created_at=organisation.created_at,
        state=organisation.state,
        state_reason=organisation.state_reason,
        state_since=organisation.state_since,
    )


def organisation_made(made: MadeOrganisation) -> OrganisationMade:
    return OrganisationMade(
        organisation=organisation_answer(made.organisation), owner_id=made.owner.id, key=made.key.secret
    )


def project_answer(project: Project) -> ProjectAnswer:
    return ProjectAnswer(
        id=project.id,
        name=project.name,
        organisation_id=project.organisation_id,
        quota=quota_shape(project.quota),
        subnet=str(subnet(project.network_number)) if project.network_number >= 0 else "",
        created_at=project.created_at,
    )


def member_answer(member: Member) -> MemberAnswer:
    return MemberAnswer(
        id=member.id,
        name=member.name,
        is_operator=member.is_operator,
        roles={place: role.value for place, role in member.roles.items()},
        created_at=member.created_at,
    )


def key_answer(key: ApiKey) -> KeyAnswer:
    return KeyAnswer(
        id=key.id,
        name=key.name,
        member_id=key.member_id,
        project=key.project_id,
        role_max=key.role_max.value if key.role_max else None,
        created_at=key.created_at,
        expires_at=key.expires_at,
        revoked_at=key.revoked_at,
    )


def key_made(made: MadeKey) -> KeyMade:
    return KeyMade(key=key_answer(made.key), secret=made.secret)


def who_am_i(actor: Actor, organisation: Organisation) -> WhoAmI:
    return WhoAmI(
        member_id=actor.member_id,
        member_name=actor.member_name,
        organisation_id=organisation.id,
        organisation_name=organisation.name,
        is_operator=actor.is_operator,
        roles={place: role.value for place, role in actor.roles.items()},
        key_id=actor.key_id,
        project_id=actor.project_id,
        role_max=actor.role_max.value if actor.role_max else None,
        expires_at=actor.expires_at,
    )


def audit_answer(row: AuditRow) -> AuditAnswer:
    return AuditAnswer(
        id=row.id,
        at=row.at,
        member_id=row.member_id,
        member=row.member,
        key_id=row.key_id,
        project_id=row.project_id,
        action=row.action,
        subject=row.subject,
        details=row.details,
    )

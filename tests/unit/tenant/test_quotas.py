"""Quota arithmetic, and parsing of quotas in settings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.base.errors import BadInput, QuotaReached
from teraflock.base.quantities import GIB
from teraflock.tenant.model import OrganisationQuota, Quota
from teraflock.tenant.quota import rules
from teraflock.tenant.quota.parse import parse_organisation_quota, parse_project_quota
from teraflock.tenant.quota.rules import QuotaAmounts

FLAT = ("instances", "vcpus", "ram_bytes", "disk_bytes", "images_bytes", "ports")
CARDS = ("A100", "V100")
limits = st.none() | st.integers(0, 20)
amounts = st.builds(
    QuotaAmounts,
    **{name: st.integers(0, 20) for name in (*FLAT, "projects")},
    gpus=st.dictionaries(st.sampled_from(CARDS), st.integers(0, 20)),
)
growths = st.builds(
    QuotaAmounts,
    **{name: st.integers(-5, 5) for name in (*FLAT, "projects")},
    gpus=st.dictionaries(st.sampled_from(CARDS), st.integers(-5, 5)),
)
_given = dict.fromkeys((*FLAT, "gpus_default"), limits)
_cards = st.dictionaries(st.sampled_from(CARDS), st.integers(0, 20))
quotas = st.builds(Quota, **_given, gpus=_cards)
walls = st.builds(OrganisationQuota, **_given, projects=limits, gpus=_cards)


def refused(quota: Quota, used: QuotaAmounts, more: QuotaAmounts) -> bool:
    try:
        rules.check(quota, used, more, of="x", hint="")
    except QuotaReached:
        return True
    return False


@given(quota=walls, used=amounts, more=growths)
def test_growth_is_refused_exactly_when_it_exceeds_a_limit(
    quota: OrganisationQuota, used: QuotaAmounts, more: QuotaAmounts
) -> None:
    passed = any(
        (limit := getattr(quota, name)) is not None
        and (grows := getattr(more, name)) > 0
        and getattr(used, name) + grows > limit
        for name in (*FLAT, "projects")
    )
    for card in CARDS:
        limit = quota.gpus.get(card, quota.gpus_default)
        grows = more.gpus.get(card, 0)
        passed |= limit is not None and grows > 0 and used.gpus.get(card, 0) + grows > limit
    assert refused(quota, used, more) == passed


@given(quota=walls, used=amounts)
def test_usage_above_a_quota_may_still_shrink(quota: OrganisationQuota, used: QuotaAmounts) -> None:
    shrinking = QuotaAmounts(instances=-1, vcpus=-2, ram_bytes=0, disk_bytes=-1, gpus={"A100": -1})
    assert not refused(quota, used, shrinking)


@given(parts=st.lists(amounts, min_size=1, max_size=4), wall=walls)
def test_accepted_requests_stay_within_the_quota(parts: list[QuotaAmounts], wall: OrganisationQuota) -> None:
    """Accepting requests one by one, each checked against the sum so far, keeps the sum within the quota."""
    total = QuotaAmounts()
    for part in parts:
        if refused(wall, total, part):
            continue
        total = QuotaAmounts(
            **{name: getattr(total, name) + getattr(part, name) for name in (*FLAT, "projects")},
            gpus={card: total.gpus.get(card, 0) + part.gpus.get(card, 0) for card in CARDS},
        )
    for name in (*FLAT, "projects"):
        limit = getattr(wall, name)
        assert limit is None or getattr(total, name) <= limit
    for card in CARDS:
        limit = rules.gpu_limit(wall, card)
        assert limit is None or total.gpus.get(card, 0) <= limit


@given(quota=quotas, wall=walls)
def test_a_clamped_default_is_within_the_organisation_quota(quota: Quota, wall: OrganisationQuota) -> None:
    cut = rules.clamped(quota, wall)
    rules.check_within(cut, wall, of="x")
    for name in (*FLAT, "gpus_default"):
        before, after = getattr(quota, name), getattr(cut, name)
        assert (before is None) == (after is None)
        assert after is None or after <= before
    try:
        rules.check_within(quota, wall, of="x")
    except BadInput:
        assert cut != quota
    else:
        assert cut == quota


@given(given_=quotas, default=quotas)
def test_missing_limits_get_the_defaults(given_: Quota, default: Quota) -> None:
    made = rules.overlaid(given_, default)
    for name in (*FLAT, "gpus_default"):
        value = getattr(given_, name)
        assert getattr(made, name) == (getattr(default, name) if value is None else value)
    assert made.gpus == {**default.gpus, **given_.gpus}


def test_quotas_in_settings_are_parsed() -> None:
    text = "projects=20, instances=100 ram=4TB images=512MB gpus=16 gpus.V100-SXM2=4"
    assert parse_organisation_quota(text) == OrganisationQuota(
        projects=20,
        instances=100,
        ram_bytes=4096 * GIB,
        images_bytes=GIB // 2,
        gpus={"V100-SXM2": 4},
        gpus_default=16,
    )
    assert parse_project_quota("") == Quota()


@pytest.mark.parametrize(
    "text", ["instances", "instances=x", "instances=-1", "ram=many", "hosts=3", "projects=3"]
)
def test_an_invalid_quota_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_project_quota(text)

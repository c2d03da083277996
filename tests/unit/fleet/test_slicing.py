"""What a card can be divided into."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.base.errors import BadInput
from teraflock.catalog.cards import card, slices_of
from teraflock.fleet.slicing.rules import checked_profiles

H200 = "H200-SXM"


@given(st.lists(st.sampled_from([each.profile for each in slices_of(card(H200))]), max_size=8))
def test_only_what_fits_on_one_card_is_accepted(profiles: list[str]) -> None:
    by_name = {each.profile: each for each in slices_of(card(H200))}
    units = sum(int(profile[0]) for profile in profiles)
    memory = sum(by_name[profile].memory_share for profile in profiles)
    if units <= 7 and memory <= 1:
        assert checked_profiles(H200, profiles) == tuple(sorted(profiles))
    else:
        with pytest.raises(BadInput, match="more than one"):
            checked_profiles(H200, profiles)


@pytest.mark.parametrize(
    ("gpu", "profile", "reason"),
    [("V100-SXM2", "1g.5gb", "cannot be divided"), (H200, "1g.10gb", "profile"), (H200, "", "profile")],
)
def test_what_a_card_does_not_have_is_refused(gpu: str, profile: str, reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        checked_profiles(gpu, [profile])

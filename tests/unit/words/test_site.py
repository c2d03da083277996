"""Who uses a site, and what it has: only what is known is printed."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from teraflock.wire.site import SiteAnswer
from teraflock.words.site import FIELDS, facts
from teraflock.words.table import cells

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SITE = SiteAnswer(
    name="sky", kind="aws", defined_in="database", state="broken", problem="no secret", since=None, simulated=False,
    rents=False, capabilities=(), hosts=0, instances=0, open=False, organisations=(), options={},
)  # fmt: skip
OWN = replace(SITE, capabilities=("placement",))
RENTED = replace(SITE, rents=True)


@pytest.mark.parametrize(
    ("site", "used_by", "machines"),
    [
        (SITE, "", ""),
        (replace(SITE, organisations=("org_1",)), "1 organisation", ""),
        (OWN, "all", "own hosts"),
        (RENTED, "nobody", "rented, one per instance"),
        (replace(RENTED, organisations=("org_1", "org_2")), "2 organisations", "rented, one per instance"),
        (replace(RENTED, open=True), "all", "rented, one per instance"),
    ],
    ids=["broken", "broken-used", "own", "rented", "rented-used", "open"],
)
def test_use_and_machines_of_a_site(site: SiteAnswer, used_by: str, machines: str) -> None:
    row = dict(zip((each.title for each in FIELDS), cells(FIELDS, site), strict=True))
    assert row["USED BY"] == used_by
    assert dict(facts(site, NOW))["machines"] == machines

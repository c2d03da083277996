"""What a spot machine prints about its end. The guest controls it, so anything must be readable."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.drivers.clouds import notices
from teraflock.drivers.clouds.model import SpotNotice

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
SOON = NOW + timedelta(minutes=2)
ALL = (
    notices.EC2_NOTICE,
    notices.GCE_NOTICE,
    notices.AZURE_NOTICE,
    notices.TENCENT_NOTICE,
    notices.ALIBABA_NOTICE,
)


@pytest.mark.parametrize(
    ("notice", "output", "at"),
    [
        (notices.EC2_NOTICE, '{"action": "terminate", "time": "2026-11-16T12:02:00Z"}', SOON),
        (notices.EC2_NOTICE, "", None),
        (notices.EC2_NOTICE, '{"action": "terminate", "time": "2036-11-16T12:02:00Z"}', None),
        (notices.GCE_NOTICE, "TRUE\n", NOW + timedelta(seconds=30)),
        (notices.GCE_NOTICE, "FALSE", None),
        (
            notices.AZURE_NOTICE,
            '{"Events": [{"EventType": "Preempt", "NotBefore": "Mon, 16 Nov 2026 12:02:00 GMT"}]}',
            SOON,
        ),
        (
            notices.AZURE_NOTICE,
            '{"Events": [{"EventType": "Reboot", "NotBefore": "Mon, 16 Nov 2026 12:02:00 GMT"}]}',
            None,
        ),
        (notices.AZURE_NOTICE, '{"Events": []}', None),
        (notices.TENCENT_NOTICE, "2026-11-16 12:02:00", SOON),
        (notices.ALIBABA_NOTICE, "2026-11-16T12:02:00Z", SOON),
        (notices.TENCENT_NOTICE, "<html>not found", None),
    ],
)
def test_a_notice_is_a_time_soon_or_nothing(notice: SpotNotice, output: str, at: datetime | None) -> None:
    assert notice.read(output, NOW) == at


@given(st.text(max_size=200), st.sampled_from(ALL))
def test_whatever_a_guest_prints_is_read(output: str, notice: SpotNotice) -> None:
    found = notice.read(output, NOW)
    assert found is None or abs(found - NOW) <= timedelta(hours=1)


@given(st.recursive(st.none() | st.booleans() | st.text(), st.lists) | st.dictionaries(st.text(), st.text()))
def test_json_of_any_form_is_read(value: object) -> None:
    import json

    for text in (json.dumps(value), json.dumps({"Events": value}), json.dumps({"time": value})):
        for notice in ALL:
            notice.read(text, NOW)

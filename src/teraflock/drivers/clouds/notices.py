"""What spot machines of a cloud can read about their end, from the metadata service inside the machine. Pure.

The guest controls the output of these commands. It decides only when a tenant is told that the machine leaves, and
nothing is ended or rented because of it.
"""

import json
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

from teraflock.drivers.clouds.model import SpotNotice

METADATA: Final = "http://169.254.169.254"
CURL: Final = "curl -s -m 3"
NOTICE_TIME_MAX: Final = timedelta(hours=1)
"""A time further away than this is not a notice of any of these clouds."""
GCE_TIME: Final = timedelta(seconds=30)


def _soon(at: datetime, now: datetime) -> datetime | None:
    return at if now - NOTICE_TIME_MAX <= at <= now + NOTICE_TIME_MAX else None


def _parsed(text: str) -> datetime:
    at = datetime.fromisoformat(text) if text[:4].isdecimal() else parsedate_to_datetime(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def read_ec2(output: str, now: datetime) -> datetime | None:
    """`{"action": "terminate", "time": "2026-11-16T12:00:00Z"}`, two minutes before the end."""
    try:
        found = json.loads(output)
        return _soon(_parsed(str(found["time"])), now) if isinstance(found, dict) else None
    except (ValueError, KeyError, TypeError, OverflowError):
        return None


def read_gce(output: str, now: datetime) -> datetime | None:
    """`TRUE`, 30 seconds before the end."""
    return now + GCE_TIME if output.strip() == "TRUE" else None


def read_azure(output: str, now: datetime) -> datetime | None:
    """The scheduled event `Preempt`, at least 30 seconds before the end."""
    try:
        events = json.loads(output)["Events"]
        times = [_parsed(str(each["NotBefore"])) for each in events if each["EventType"] == "Preempt"]
        found = [at for each in times if (at := _soon(each, now))]
    except (ValueError, KeyError, TypeError, OverflowError):
        return None
    return min(found, default=None)


def read_time(output: str, now: datetime) -> datetime | None:
    """A time alone, `2026-11-16 12:00:00` in UTC."""
    try:
        return _soon(_parsed(output.strip().replace(" ", "T", 1)), now)
    except (ValueError, TypeError, OverflowError):
        return None


EC2_NOTICE: Final = SpotNotice(
    command=(
        f"t=$({CURL} -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' {METADATA}/latest/api/token);"
        f' {CURL} -f -H "X-aws-ec2-metadata-token: $t" {METADATA}/latest/meta-data/spot/instance-action; true'
    ),
    read=read_ec2,
)
GCE_NOTICE: Final = SpotNotice(
    command=f"{CURL} -f -H 'Metadata-Flavor: Google' {METADATA}/computeMetadata/v1/instance/preempted; true",
    read=read_gce,
)
AZURE_NOTICE: Final = SpotNotice(
    command=f"{CURL} -f -H 'Metadata: true' '{METADATA}/metadata/scheduledevents?api-version=2020-07-01'; true",
    read=read_azure,
)
TENCENT_NOTICE: Final = SpotNotice(
    command=f"{CURL} -f http://metadata.tencentyun.com/latest/meta-data/spot/termination-time; true",
    read=read_time,
)
ALIBABA_NOTICE: Final = SpotNotice(
    command=f"{CURL} -f http://100.100.100.200/latest/meta-data/instance/spot/termination-time; true",
    read=read_time,
)

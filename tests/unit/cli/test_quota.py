"""Quotas as rows of a table."""

from teraflock.base.quantities import bytes_text
from teraflock.cli.quota import DATA_DEFAULT, _rows
from teraflock.dataset.service import BYTES_MAX_DEFAULT
from teraflock.wire.quota import QuotaShape, UsageAnswer


def test_data_without_any_limit_shows_the_default_that_applies() -> None:
    assert bytes_text(BYTES_MAX_DEFAULT) == DATA_DEFAULT
    usage = UsageAnswer(instances=0, vcpus=0, ram_bytes=0, disk_bytes=0, gpus={}, quota=QuotaShape())
    assert _rows(usage)["data"] == ["0 B", "64 GB per project"]

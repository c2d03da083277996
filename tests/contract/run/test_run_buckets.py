"""The bucket of a region against moto: parts, streams, and addresses that allow one act on one object."""

from urllib.parse import parse_qs, urlsplit

import pytest

from teraflock.app import bucket as buckets
from teraflock.base.errors import BadInput


def test_bucket_of_a_region_streams_and_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    moto = pytest.importorskip("moto")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setattr(buckets, "PART_BYTES", 5 << 20)  # the smallest part that S3 accepts
    with moto.mock_aws():
        made = buckets.run_buckets({"us-east-1": "s3://lake/runs?region=us-east-1"})["us-east-1"]
        made._client.create_bucket(Bucket="lake")  # type: ignore[attr-defined]
        large = [bytes([each]) * (1 << 20) for each in range(12)]
        made.put_stream("data/large", iter(large))
        made.put_stream("data/small", [b"small"])
        assert made.sizes("data/") == {"data/large": 12 << 20, "data/small": 5}
        assert b"".join(made.get_stream("data/large")) == b"".join(large)
        put, get = urlsplit(made.put_url("run_1/a.tar", 77)), urlsplit(made.get_url("run_1/a.tar"))
        assert put.path.endswith("/runs/run_1/a.tar")
        said = parse_qs(put.query)
        assert said["X-Amz-Expires"] == ["900"]
        assert "content-length" in said["X-Amz-SignedHeaders"][0].split(";"), "a larger object is refused"
        assert put.query != get.query
        made.remove("data/")
        assert made.sizes("") == {}
    assert buckets.run_store("") is None
    with pytest.raises(BadInput, match="run_store"):
        buckets.run_store("/mnt/kept")
    with pytest.raises(BadInput, match="run_buckets"):
        buckets.run_buckets({"home": "ftp://lake"})

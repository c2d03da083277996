"""S3 buckets, for the chunks of datasets and for runs. botocore is loaded only when a setting names a bucket."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from teraflock.base.errors import BadInput, Unavailable
from teraflock.dataset.files import ChunkBucket
from teraflock.dataset.rules import joined
from teraflock.run.bucket import URL_SECONDS, RunBucket

SECONDS_MAX: Final = 60
PART_BYTES: Final = 32 << 20
"""S3 allows 10,000 parts."""
PIECE_BYTES: Final = 1 << 20
FORM: Final = "s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION"
OPTIONS: Final = frozenset({"endpoint", "region"})


def bucket_of(url: str) -> ChunkBucket | None:
    """The bucket of `data_bucket`. Empty: none, so the chunks stay on the server."""
    return s3_bucket(url, "data_bucket") if url else None


def run_store(url: str) -> RunBucket | None:
    """The bucket of `run_store`. Empty: none, so outputs and checkpoints stay on the server."""
    return s3_bucket(url, "run_store") if url else None


def run_buckets(urls: Mapping[str, str]) -> dict[str, RunBucket]:
    return {region: s3_bucket(url, "run_buckets") for region, url in urls.items()}


def s3_bucket(url: str, setting: str) -> "S3Bucket":
    parts = urlsplit(url)
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    if parts.scheme != "s3" or not parts.netloc or options.keys() - OPTIONS:
        raise BadInput(f"`{setting}` cannot be `{url[:80]}`", hint=f"Write it as `{FORM}`")
    return S3Bucket(
        parts.netloc,
        parts.path.strip("/"),
        endpoint=options.get("endpoint", ""),
        region=options.get("region", ""),
    )


class S3Bucket:
    """One bucket. The credentials are those of botocore: `AWS_ACCESS_KEY_ID`, a profile, or the machine's role."""

    def __init__(self, bucket: str, prefix: str, *, endpoint: str, region: str) -> None:
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        try:
            from botocore.config import Config
            from botocore.session import Session
        except ModuleNotFoundError:
            raise BadInput(
                "A bucket needs the package `botocore`",
                hint="Install it: `pip install 'teraflock[aws]'`",
            ) from None
        config = Config(
            retries={"total_max_attempts": 4, "mode": "standard"},
            connect_timeout=SECONDS_MAX,
            read_timeout=SECONDS_MAX,
            signature_version="s3v4",
        )
        self._client: Any = Session().create_client(
            "s3", region_name=region or "us-east-1", endpoint_url=endpoint or None, config=config
        )

    def put(self, key: str, content: bytes) -> None:
        self._call("put_object", Key=self._prefix + key, Body=content)

    def get(self, key: str) -> bytes:
        content: bytes = self._call("get_object", Key=self._prefix + key)["Body"].read()
        return content

    def put_url(self, key: str, size_bytes: int) -> str:
        """The size is part of the signature, so nothing larger can be sent."""
        return self._url("put_object", Key=self._prefix + key, ContentLength=size_bytes)

    def get_url(self, key: str) -> str:
        return self._url("get_object", Key=self._prefix + key)

    def _url(self, operation: str, **arguments: Any) -> str:
        given = {"Bucket": self._bucket, **arguments}
        url: str = self._client.generate_presigned_url(operation, Params=given, ExpiresIn=URL_SECONDS)
        return url

    def put_stream(self, key: str, pieces: Iterable[bytes]) -> None:
        """Upload in parts. Readers see the object when it is complete."""
        parts, at = joined(pieces, PART_BYTES), self._prefix + key
        first = next(parts)
        if len(first) < PART_BYTES:
            self.put(key, first + b"".join(parts))
            return
        upload = self._call("create_multipart_upload", Key=at)["UploadId"]
        done = []
        try:
            for number, part in enumerate(chain([first], parts), start=1):
                tag = self._call("upload_part", Key=at, UploadId=upload, PartNumber=number, Body=part)
                done.append({"ETag": tag["ETag"], "PartNumber": number})
        except BaseException:
            self._call("abort_multipart_upload", Key=at, UploadId=upload)
            raise
        whole = {"Parts": done}
        self._call("complete_multipart_upload", Key=at, UploadId=upload, MultipartUpload=whole)

    def get_stream(self, key: str) -> Iterator[bytes]:
        body = self._call("get_object", Key=self._prefix + key)["Body"]
        while piece := body.read(PIECE_BYTES):
            yield piece

    def sizes(self, prefix: str) -> Mapping[str, int]:
        return dict(self._listed(prefix))

    def remove(self, prefix: str) -> None:
        for key, _ in list(self._listed(prefix)):
            self._call("delete_object", Key=self._prefix + key)

    def _listed(self, prefix: str) -> Iterator[tuple[str, int]]:
        more: dict[str, str] = {}
        while True:
            page = self._call("list_objects_v2", Prefix=self._prefix + prefix, **more)
            for each in page.get("Contents", ()):
                yield each["Key"].removeprefix(self._prefix), int(each["Size"])
            if not page.get("IsTruncated"):
                return
            more = {"ContinuationToken": page["NextContinuationToken"]}

    def _call(self, operation: str, **arguments: Any) -> Any:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return getattr(self._client, operation)(Bucket=self._bucket, **arguments)
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "unknown")
            raise Unavailable(
                f"A bucket refused a request: {code}",
                hint="Try again later, or tell the operator",
                context={"operation": operation, "bucket": self._bucket},
            ) from None
        except BotoCoreError as error:
            raise Unavailable(
                "A bucket does not answer",
                hint="Try again later, or tell the operator",
                context={"reason": type(error).__name__, "bucket": self._bucket},
            ) from None

"""Sends calls to AWS with botocore, which signs them and checks their parameters. Loaded only for accounts at AWS.

A `CloudCall` names the service and operation in `method` (`ec2.RunInstances`), the region in `path`, and has the
parameters in `body`. Credentials are `ACCESS_KEY_ID:SECRET_ACCESS_KEY`, with an optional `:SESSION_TOKEN`.
"""

from collections.abc import Mapping
from typing import Any, Final

from teraflock.base.errors import BadInput
from teraflock.drivers.clouds.calls import CloudCall, CloudReply
from teraflock.instance.engine_errors import EngineDown, EngineRefused

SECONDS_MAX: Final = 30


class BotoTransport:
    def __init__(self, secret: str, base_url: str = "") -> None:
        id, _, rest = secret.partition(":")
        key, _, token = rest.partition(":")
        if not id or not key:
            raise BadInput(
                "AWS credentials have the form `ACCESS_KEY_ID:SECRET_ACCESS_KEY`",
                hint="Write both parts in one line",
            )
        self.base_url = base_url
        self._credentials = {
            "aws_access_key_id": id, "aws_secret_access_key": key, "aws_session_token": token or None,
        }  # fmt: skip
        self._clients: dict[tuple[str, str], Any] = {}

    def url(self, call: CloudCall) -> str:
        return ""

    def send(self, call: CloudCall, headers: Mapping[str, str], content: bytes | None) -> CloudReply:
        from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

        service, _, operation = call.method.partition(".")
        try:
            client = self._client(service, call.path)
            body = client._make_api_call(operation, dict(call.body or {}))
        except ClientError as error:
            said = error.response.get("Error", {})
            status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400))
            return CloudReply(
                status=max(status, 400), body={"code": said.get("Code"), "message": said.get("Message")}
            )
        except ParamValidationError as error:
            raise EngineRefused(f"AWS does not accept this request: {error}") from None
        except BotoCoreError as error:
            raise EngineDown(f"No answer from AWS: {type(error).__name__}") from None
        return CloudReply(status=200, body=body)

    def _client(self, service: str, region: str) -> Any:
        key = (service, region)
        if key not in self._clients:
            try:
                from botocore.config import Config
                from botocore.session import Session
            except ModuleNotFoundError:
                raise EngineRefused(
                    "Accounts at AWS need the package `botocore`",
                    hint="Install it: `pip install 'teraflock[aws]'`",
                ) from None
            config = Config(
                retries={"total_max_attempts": 1},
                connect_timeout=SECONDS_MAX,
                read_timeout=SECONDS_MAX,
                ignore_configured_endpoint_urls=True,  # addresses come from the account's options only
            )
            self._clients[key] = Session().create_client(
                service,
                region_name=region,
                endpoint_url=self.base_url or None,
                config=config,
                **self._credentials,
            )
        return self._clients[key]

"""Makes the calls of a question to a cloud: paced for the whole account, signed, with errors free of credentials."""

import logging
import traceback
from datetime import datetime
from typing import Final, TypeVar

from teraflock.base.clock import Clock
from teraflock.base.errors import TeraflockError
from teraflock.drivers.clouds.calls import Asking, CloudCall, CloudReply
from teraflock.drivers.clouds.http import CloudTransport, content_of, headers_of
from teraflock.drivers.clouds.model import CloudApi
from teraflock.drivers.clouds.pacing import Pacer
from teraflock.drivers.clouds.signing import Signer, SigningRequest
from teraflock.instance.engine_errors import EngineDown

LOG: Final = logging.getLogger("teraflock.clouds")
T = TypeVar("T")
READS_MAX: Final = 2
"""How often a read is sent if the connection fails. Everything else is repeated by the loops, which look first."""
CALLS_MAX: Final = 200
"""Calls of one question: pages of a listing, mostly. Beyond that the provider repeats itself."""


class Caller:
    def __init__(
        self, cloud: CloudApi, transport: CloudTransport, signer: Signer, pacer: Pacer, clock: Clock
    ) -> None:
        self.cloud = cloud
        self._transport = transport
        self._signer = signer
        self._pacer = pacer
        self._clock = clock

    def ask(self, asking: Asking[T], launched_at: list[datetime] | None = None) -> T:
        """Answer the calls of a question until it has its result. `launched_at` receives the times of launches."""
        times = [] if launched_at is None else launched_at
        try:
            call = next(asking)
            for _ in range(CALLS_MAX):
                call = self._continued(asking, call, times)
        except StopIteration as done:
            result: T = done.value
            return result
        except TeraflockError as error:
            error.sentence = self._signer.scrubbed(error.sentence)
            error.args = (error.sentence,)
            raise
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError) as error:
            trace = "".join(traceback.format_exception(error))
            LOG.error("%s: unexpected answer\n%s", self.cloud.title, self._signer.scrubbed(trace))
            raise EngineDown(
                f"{self.cloud.title} answered in a form that this version does not know: {type(error).__name__}",
                hint="Update Teraflock, or report it",
            ) from None
        raise EngineDown(f"{self.cloud.title} sent more than {CALLS_MAX} pages")

    def _continued(self, asking: Asking[T], call: CloudCall, launched_at: list[datetime]) -> CloudCall:
        """Send a call and return the next one. A question may catch an error, such as missing capacity in a zone."""
        try:
            reply = self._send(call, launched_at)
        except TeraflockError as error:
            return asking.throw(error)
        return asking.send(reply)

    def _send(self, call: CloudCall, launched_at: list[datetime]) -> CloudReply:
        if call.signed:
            self._prepare(launched_at)
        content = content_of(call)
        for attempt in range(1, READS_MAX + 1):
            self._pacer.wait(call.act)
            headers = self._headers(call, content)
            if call.act == "launch":
                launched_at.append(self._clock.now())
            try:
                return self._judged(call, self._transport.send(call, headers, content))
            except EngineDown:
                if call.act != "read" or attempt == READS_MAX:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _prepare(self, launched_at: list[datetime]) -> None:
        """Fetch a token, where the provider wants one and none is valid."""
        preparation = self._signer.preparation(self._clock.now())
        if preparation is not None:
            self._signer.prepared(self._send(preparation, launched_at), self._clock.now())

    def _headers(self, call: CloudCall, content: bytes | None) -> dict[str, str]:
        url = self._transport.url(call)
        headers = {**headers_of(call, url, content), **call.headers}
        if not call.signed:
            return headers
        now = self._clock.now()
        request = SigningRequest(method=call.method, url=url, headers=headers, content=content or b"", at=now)
        return {**headers, **self._signer.headers(request)}

    def _judged(self, call: CloudCall, reply: CloudReply) -> CloudReply:
        status = self.cloud.status(reply)
        if status == 429:
            self._pacer.refused(reply.retry_after)
        else:
            self._pacer.answered()
        if status == 401:
            self._signer.refused()
        if status < 400:
            return reply
        reply = self._signer.scrubbed_reply(reply)
        if status in call.accepts:
            return reply
        raise self.cloud.error(call, reply)

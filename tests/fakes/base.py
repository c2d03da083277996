"""What all fakes of clouds share: machines with a price and a life, the same fault switches, and the cost charged.

A fake is a `CloudTransport`: it answers calls in this process, and `server.py` serves it over HTTP. It charges each
machine from its launch until it ends, at its price, rounded down to the micro-unit.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar
from urllib.parse import parse_qsl

import msgspec
import pytest
from msgspec.structs import replace
from tests.fakes.exchange import Exchange
from tests.fakes.judge import judge_for
from tests.fakes.models import ModelJudge, Said

from teraflock.base.clock import Clock
from teraflock.drivers.clouds.calls import CloudCall, CloudReply
from teraflock.drivers.clouds.http import reply_of, url_of
from teraflock.instance.engine_errors import EngineDown

HOUR_US = 3_600 * 10**6
KEY = "sk-fake-1234567890"


def method_of(action: str) -> str:
    """The method of a fake that answers an action: `_run_instances` for `RunInstances`."""
    return "_" + re.sub(r"(?<!^)([A-Z])", r"_\1", action).lower()


def judged(check: Callable[..., None], *words: Any) -> None:
    """Ask a judge. What it objects to ends the test: a driver must not take it for an answer of the provider."""
    try:
        check(*words)
    except AssertionError as error:
        pytest.fail(str(error))


class FakeMachine(msgspec.Struct, kw_only=True):
    id: str
    type: str
    region: str
    label: Any
    """Where the cloud keeps our mark: a text or tags."""
    boot: str
    """The first-boot configuration or script."""
    keys: list[str]
    """Public keys that may log in."""
    gpus: int
    gpu_memory_bytes: int
    micros_per_hour: int
    born: datetime
    up_at: datetime
    listed_at: datetime
    address: str
    ended: datetime | None = None
    dead: bool = False
    """It never comes up."""
    outbid: bool = False
    spot: bool = False
    notice: str = ""
    """What its metadata service says about its end."""
    stopped: bool = False
    cuda: int = 0
    """What `cuInit` returns."""
    gpus_seen: int | None = None
    host_key: str = ""
    """Shown by its SSH server; empty: the one in its first-boot files."""

    def charged(self, now: datetime) -> int:
        us = ((self.ended or now) - self.born) // timedelta(microseconds=1)
        return self.micros_per_hour * us // HOUR_US


class FakeCloud:
    spec: ClassVar[str] = ""
    """The file of the provider's own description, which judges both sides."""
    judged_with: ClassVar[dict[str, Any]] = {}
    """Changes that the description needs, for `judge_for`."""
    public: ClassVar[tuple[str, ...]] = ()
    """Beginnings of paths that need no credentials."""
    troubles: ClassVar[frozenset[str]] = frozenset({"over_quota", "broke"})
    """Which of these its API can report."""

    unjudged: ClassVar[tuple[str, ...]] = ("//",)
    """Beginnings of paths that the description does not have."""
    services: ClassVar[tuple[str, ...]] = ()
    """Names of the provider's other services, whose paths begin with their name here."""
    secret: ClassVar[str] = KEY
    """Credentials as an operator stores them."""
    options: ClassVar[dict[str, str]] = {}
    """Options that an account needs."""
    said: ClassVar[tuple[str, Mapping[str, Said]]] = ("", {})
    """The table of the models of the provider's SDK, and the calls that it makes, where there is no description."""
    leaves: ClassVar[tuple[str, ...]] = ()
    """Kinds of things with our mark that a machine may leave behind here."""

    def leave(self, kind: str, mark: str, token: str) -> None:
        """Leave something of a launch behind."""
        raise NotImplementedError

    @classmethod
    def judge_of(cls) -> Any:
        """The judge with the provider's description, or with the models of its SDK. Skips where neither is at hand."""
        if cls.said[0]:
            return ModelJudge(*cls.said)
        return judge_for(cls.spec, **cls.judged_with)

    def __init__(self, clock: Clock, *, boot_seconds: float = 20.0, judge: Any = None) -> None:
        self.clock = clock
        self.machines: dict[str, FakeMachine] = {}
        self.calls: list[str] = []
        self.judge = judge
        self.region = ""
        """The region in the host name of the request that is being answered."""
        self.headers: Mapping[str, str] = {}
        self.boot_seconds = boot_seconds
        self.listing_seconds = 0.0
        """How long listings lack a new machine."""
        self.lost_answers: list[str] = []
        """Acts whose next answer is lost after they were done: `launch`, `change` or `read`."""
        self.lost_requests: list[str] = []
        """Acts whose next request is lost before anything is done."""
        self.skew_seconds = 0.0
        """How far the provider's clock is ahead of ours."""
        self.refusals = 0
        """How many requests are answered with 429."""
        self.sold_out: set[str] = set()
        self.over_quota = False
        self.broke = False
        self.locked_out = False
        self.disks: dict[str, Any] = {}
        """Disks by their names, where the driver lists those without a machine."""
        self.born_dead = 0
        """How many of the next machines never come up."""
        self.born_broken = 0
        """How many of the next machines have GPUs that CUDA cannot use."""
        self.born_short = 0
        """How many of the next machines lack a GPU."""
        self.born_small = 0
        """How many of the next machines have GPUs with half of the promised memory."""

    # The transport

    def url(self, call: CloudCall) -> str:
        services = {name: f"https://{{region}}.fake.invalid/{name}" for name in self.services}
        return url_of(
            "https://{region}.fake.invalid", services, replace(call, region=call.region or "global")
        )

    def send(self, call: CloudCall, headers: Mapping[str, str], content: bytes | None) -> CloudReply:
        self.calls.append(f"{call.act} {call.method} {call.path}")
        if call.act in self.lost_requests:
            self.lost_requests.remove(call.act)
            raise EngineDown("The request was lost")
        path = f"/{call.service}{call.path}" if call.service else call.path
        status, answered, body = self.answer(call.method, path, dict(call.query), headers, content)
        if call.act in self.lost_answers:
            self.lost_answers.remove(call.act)
            raise EngineDown("The answer was lost")
        return reply_of(status, answered, body)

    def answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        content: bytes | None,
    ) -> tuple[int, dict[str, str], bytes]:
        if self.refusals:
            self.refusals -= 1
            return self._encoded(429, self.too_many(), {"Retry-After": "2"})
        if not path.startswith(self.public) and (self.locked_out or not self.is_signed(headers)):
            return self._encoded(*self.unauthorised())
        self.region = headers.get("Host", "").partition(".")[0]
        self.headers = headers
        status, body = self.route(method, path, query, self._decoded(headers, content))
        encoded = self._encoded(status, body)
        if self.judge is not None and not path.startswith(self.unjudged):
            judged(self.judge.check, Exchange(method, path, query, headers, content, *encoded))
        return encoded

    def is_signed(self, headers: Mapping[str, str]) -> bool:
        return headers.get("Authorization") == f"Bearer {KEY}"

    def _decoded(self, headers: Mapping[str, str], content: bytes | None) -> Any:
        if not content:
            return None
        if headers.get("Content-Type", "").startswith("application/x-www-form"):
            return dict(parse_qsl(content.decode()))
        return msgspec.json.decode(content)

    def _encoded(
        self, status: int, body: Any, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        content = b"" if body is None else msgspec.json.encode(body)
        return status, {"Content-Type": "application/json", **(headers or {})}, content

    # What each cloud writes

    def route(self, method: str, path: str, query: Mapping[str, str], body: Any) -> tuple[int, Any]:
        raise NotImplementedError

    def unauthorised(self) -> tuple[int, Any]:
        return 401, {}

    def too_many(self) -> Any:
        return {}

    # Machines

    def launch(self, **facts: Any) -> FakeMachine:
        number = len(self.machines) + 1
        now = self.clock.now()
        made = FakeMachine(
            id=facts.pop("id", "") or self.new_id(number),
            born=now,
            up_at=now + timedelta(seconds=self.boot_seconds),
            listed_at=now + timedelta(seconds=self.listing_seconds),
            address=f"198.51.100.{number}",
            dead=self.born_dead > 0,
            cuda=802 if self.born_broken > 0 else 0,
            **facts,
        )
        if self.born_short > 0:
            made.gpus_seen = made.gpus - 1
        if self.born_small > 0:
            made.gpu_memory_bytes //= 2
        for switch in ("born_dead", "born_broken", "born_short", "born_small"):
            setattr(self, switch, max(getattr(self, switch) - 1, 0))
        self.machines[made.id] = made
        return made

    def told(self, machine: FakeMachine) -> datetime:
        """When a machine began, by the provider's clock."""
        return machine.born + timedelta(seconds=self.skew_seconds)

    def new_id(self, number: int) -> str:
        return f"m-{number:06d}"

    def end(self, id: str) -> bool:
        found = self.machines.get(id)
        if found is None or found.ended is not None:
            return False
        found.ended = self.clock.now()
        return True

    @property
    def alive(self) -> list[FakeMachine]:
        return [each for each in self.machines.values() if each.ended is None]

    def listed(self) -> list[FakeMachine]:
        now = self.clock.now()
        return [each for each in self.alive if each.listed_at <= now]

    def is_up(self, machine: FakeMachine) -> bool:
        return not machine.dead and not machine.stopped and self.clock.now() >= machine.up_at

    def charged(self) -> int:
        return sum(each.charged(self.clock.now()) for each in self.machines.values())

    def by_address(self, address: str) -> FakeMachine | None:
        return next((each for each in self.alive if each.address == address), None)

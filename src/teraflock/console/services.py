"""What the console needs from the server it is part of."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import msgspec

from teraflock.base.clock import Clock
from teraflock.base.errors import TeraflockError
from teraflock.console.transport import Ask
from teraflock.instance.terminal.service import TerminalService
from teraflock.tenant.identity.service import IdentityService
from teraflock.tenant.lesson.service import LessonService
from teraflock.tenant.model import Actor, Announcement
from teraflock.tenant.service import TenantService
from teraflock.tenant.session.service import SessionService
from teraflock.tenant.sign_up.service import SignUpService


class SignInLimits(Protocol):
    """Slows down guessing. Each method raises `TooMany`."""

    def visits(self, address: str) -> None:
        """Count a request without a session."""

    def tries(self, address: str, user_name: str) -> None:
        """Count an attempt to sign in."""

    def entered(self, address: str, *, requests: int = 1) -> None:
        """The attempt succeeded, so its requests do not count against their address: many people may share one."""

    def signs_up(self, address: str) -> None:
        """Count a sign-up."""

    def chooses_name(self, address: str) -> AbstractContextManager[None]:
        """Count the answer that a user name is taken, and refuse to answer when there were many."""


class TenantTurns(Protocol):
    """Queues the requests of one tenant beyond its share of the threads."""

    async def enter(self, tenant: str) -> None: ...

    def leave(self, tenant: str) -> None: ...


class ConsoleServices(msgspec.Struct, frozen=True, kw_only=True):
    tenants: TenantService
    sessions: SessionService
    identities: IdentityService | None
    """None: the server has no identity provider."""
    sign_up: SignUpService | None
    """None: strangers cannot sign up."""
    lessons: LessonService
    clock: Clock
    news: Callable[[Actor], tuple[Announcement, ...]]
    """What operators announced, newest first."""
    reality: Callable[[], str]
    """`simulated`, `mixed` or `real`."""
    ask: Ask
    api: Any
    """The API as an ASGI application, for streams."""
    failed: Callable[[Exception, Any], tuple[int, TeraflockError]]
    """The status and the public form of an error. The rest goes to the log."""
    limits: SignInLimits
    terminals: TerminalService
    turns: TenantTurns
    random_bytes: Callable[[int], bytes]
    body_bytes_max: int
    threads: int = 8

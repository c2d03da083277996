"""Quota arithmetic. Pure: what is used comes in as a value, what is too much goes out as an error.

What holds:
- only what grows is checked: an act that grows nothing is never refused, however far over its quota a tenant is;
- a limit of None allows any amount; a GPU model without a limit of its own is limited by `gpus_default`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from teraflock.base.errors import BadInput, QuotaReached
from teraflock.base.quantities import memory_text
from teraflock.tenant.model import OrganisationQuota, Quota

Q = TypeVar("Q", bound=Quota)


class Amounts(msgspec.Struct, frozen=True, kw_only=True):
    """What counts against a quota: what is used, or by how much that would grow."""

    instances: int = 0
    vcpus: int = 0
    ram_bytes: int = 0
    disk_bytes: int = 0
    """Disks of instances, with what their snapshots keep."""
    images_bytes: int = 0
    projects: int = 0
    gpus: Mapping[str, int] = {}
    """By the catalog's id of the card."""


_WORDS: Final[Mapping[str, tuple[str, Callable[[int], str]]]] = {
    "instances": ("instances", str),
    "vcpus": ("vCPUs", str),
    "ram_bytes": ("of RAM", memory_text),
    "disk_bytes": ("of disk", memory_text),
    "images_bytes": ("of images", memory_text),
    "projects": ("projects", str),
}
"""What each limit is called, and how its amounts are written."""
_OTHER_GPUS: Final = "gpus_default"


def check(quota: Quota, used: Amounts, more: Amounts, *, of: str, hint: str) -> None:
    """Raise `QuotaReached` where `more` would exceed a limit. `of` names whose quota it is."""
    for name, limit, grows, after in _grown(quota, used, more):
        if limit is not None and grows > 0 and after > limit:
            what, text = _words(name)
            raise QuotaReached(
                f"The quota of {of} allows {text(limit)} {what}; this would make {text(after)}", hint=hint
            )


def check_not_passed(quota: Quota, used: Amounts, name: str, *, of: str, hint: str) -> None:
    """For what shows its size only when it is made: the first to pass a limit is the last."""
    limit, now = getattr(quota, name), getattr(used, name)
    if limit is not None and now > limit:
        what, text = _words(name)
        raise QuotaReached(f"The quota of {of} allows {text(limit)} {what}; {text(now)} are used", hint=hint)


def _grown(quota: Quota, used: Amounts, more: Amounts) -> Iterator[tuple[str, int | None, int, int]]:
    """Of each dimension: its name, its limit, by how much it grows, and what that makes."""
    for name in _WORDS:
        grows = getattr(more, name)
        yield name, getattr(quota, name, None), grows, getattr(used, name) + grows
    for gpu, grows in more.gpus.items():
        yield gpu, gpu_limit(quota, gpu), grows, used.gpus.get(gpu, 0) + grows


def gpu_limit(quota: Quota, gpu: str) -> int | None:
    return quota.gpus.get(gpu, quota.gpus_default)


def check_within(quota: Quota, wall: OrganisationQuota, *, of: str) -> None:
    """Refuse a project's quota that promises more than its organisation may have."""
    for name, limit, most in _pairs(quota, wall):
        if limit is not None and most is not None and limit > most:
            what, text = _words(name)
            raise BadInput(
                f"A project cannot have {text(limit)} {what}: the quota of {of} allows {text(most)}",
                hint=f"Set {text(most)} or less; the operator can raise the quota of the organisation",
            )


def clamped(quota: Q, wall: OrganisationQuota) -> Q:
    """A default quota, cut to what the organisation may have."""
    cut = {
        name: min(limit, most)
        for name, limit, most in _pairs(quota, wall)
        if limit is not None and most is not None
    }
    gpus = {gpu: cut.get(gpu, limit) for gpu, limit in quota.gpus.items()}
    limits = {name: limit for name, limit in cut.items() if name in quota.__struct_fields__}
    return replace(quota, **{**limits, "gpus": gpus})


def _pairs(quota: Quota, wall: OrganisationQuota) -> Iterator[tuple[str, int | None, int | None]]:
    """Each limit of a project beside its organisation's."""
    for name in _WORDS:
        if name in quota.__struct_fields__:
            yield name, getattr(quota, name), getattr(wall, name)
    for gpu, limit in quota.gpus.items():
        yield gpu, limit, gpu_limit(wall, gpu)
    yield _OTHER_GPUS, quota.gpus_default, wall.gpus_default


def _words(name: str) -> tuple[str, Callable[[int], str]]:
    if name == _OTHER_GPUS:
        return "GPUs of each other model", str
    return _WORDS.get(name, (f"GPUs `{name}`", str))


def overlaid(quota: Quota, default: Quota) -> Quota:
    """A quota in which limits that are not given are the default's."""
    given = {
        name: value
        for name in quota.__struct_fields__
        if name != "gpus" and (value := getattr(quota, name)) is not None
    }
    return replace(default, gpus={**default.gpus, **quota.gpus}, **given)


def limits_nothing(quota: Quota) -> bool:
    return quota == type(quota)()


def flat(quota: Quota) -> dict[str, int | None]:
    """The limits that are set, for the audit log, whose details are flat."""
    gpus = {f"gpus.{gpu}": number for gpu, number in quota.gpus.items()}
    limits = {name: getattr(quota, name) for name in quota.__struct_fields__ if name != "gpus"}
    return {name: number for name, number in {**limits, **gpus}.items() if number is not None}

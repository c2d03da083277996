"""Quota arithmetic. Pure functions: usage comes in as a value, and an exceeded limit raises an error.

Invariants:
- only growth is checked: a change that grows nothing is never refused, even far above the quota;
- a limit of None allows any amount; a GPU model without its own limit is limited by `gpus_default`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from teraflock.base.errors import BadInput, QuotaReached
from teraflock.base.quantities import memory_text
from teraflock.tenant.model import OrganisationQuota, Quota

Q = TypeVar("Q", bound=Quota)


class QuotaAmounts(msgspec.Struct, frozen=True, kw_only=True):
    """What counts against a quota: the current usage, or its growth."""

    instances: int = 0
    vcpus: int = 0
    ram_bytes: int = 0
    disk_bytes: int = 0
    """Disks of instances, including the space of their snapshots."""
    images_bytes: int = 0
    data_bytes: int = 0
    """Datasets."""
    ports: int = 0
    """Published ports."""
    addresses: int = 0
    """Public addresses."""
    networks: int = 0
    projects: int = 0
    gpus: Mapping[str, int] = {}
    """By the catalog's id of the GPU model."""


_WORDS: Final[Mapping[str, tuple[str, Callable[[int], str]]]] = {
    "instances": ("instances", str),
    "vcpus": ("vCPUs", str),
    "ram_bytes": ("of RAM", memory_text),
    "disk_bytes": ("of disk", memory_text),
    "images_bytes": ("of images", memory_text),
    "data_bytes": ("of data", memory_text),
    "ports": ("published ports", str),
    "addresses": ("public addresses", str),
    "networks": ("networks", str),
    "projects": ("projects", str),
}
"""The name of each limit, and the format of its amounts."""
_OTHER_GPUS: Final = "gpus_default"


def check(quota: Quota, used: QuotaAmounts, more: QuotaAmounts, *, of: str, hint: str) -> None:
    """Raise `QuotaReached` if `more` would exceed a limit. `of` names the owner of the quota."""
    for name, limit, grows, after in _grown(quota, used, more):
        if limit is not None and grows > 0 and after > limit:
            what, text = _words(name)
            raise QuotaReached(
                f"The quota of {of} allows {text(limit)} {what}; this would need {text(after)}", hint=hint
            )


def check_not_passed(quota: Quota, used: QuotaAmounts, name: str, *, of: str, hint: str) -> None:
    """For things whose size is unknown beforehand: raise if the limit is already reached."""
    limit, now = getattr(quota, name), getattr(used, name)
    if limit is not None and now > limit:
        what, text = _words(name)
        raise QuotaReached(f"The quota of {of} allows {text(limit)} {what}; {text(now)} in use", hint=hint)


def _grown(
    quota: Quota, used: QuotaAmounts, more: QuotaAmounts
) -> Iterator[tuple[str, int | None, int, int]]:
    """For each dimension: its name, its limit, its growth, and the new amount."""
    for name in _WORDS:
        grows = getattr(more, name)
        yield name, getattr(quota, name, None), grows, getattr(used, name) + grows
    for gpu, grows in more.gpus.items():
        yield gpu, gpu_limit(quota, gpu), grows, used.gpus.get(gpu, 0) + grows


def gpu_limit(quota: Quota, gpu: str) -> int | None:
    return quota.gpus.get(gpu, quota.gpus_default)


def check_within(quota: Quota, outer: OrganisationQuota, *, of: str) -> None:
    """Refuse a project quota that exceeds the quota of its organisation."""
    for name, limit, most in _pairs(quota, outer):
        if limit is not None and most is not None and limit > most:
            what, text = _words(name)
            raise BadInput(
                f"A project cannot have {text(limit)} {what}: the quota of {of} allows {text(most)}",
                hint=f"Set {text(most)} or less. The operator can raise the quota of the organisation",
            )


def clamped(quota: Q, outer: OrganisationQuota) -> Q:
    """A default quota, reduced to what the organisation may hold."""
    cut = {
        name: min(limit, most)
        for name, limit, most in _pairs(quota, outer)
        if limit is not None and most is not None
    }
    gpus = {gpu: cut.get(gpu, limit) for gpu, limit in quota.gpus.items()}
    limits = {name: limit for name, limit in cut.items() if name in quota.__struct_fields__}
    return replace(quota, **{**limits, "gpus": gpus})


def _pairs(quota: Quota, outer: OrganisationQuota) -> Iterator[tuple[str, int | None, int | None]]:
    """Each limit of a project with that of its organisation."""
    for name in _WORDS:
        if name in quota.__struct_fields__:
            yield name, getattr(quota, name), getattr(outer, name)
    for gpu, limit in quota.gpus.items():
        yield gpu, limit, gpu_limit(outer, gpu)
    yield _OTHER_GPUS, quota.gpus_default, outer.gpus_default


def _words(name: str) -> tuple[str, Callable[[int], str]]:
    if name == _OTHER_GPUS:
        return "GPUs of each other model", str
    return _WORDS.get(name, (f"GPUs `{name}`", str))


def overlaid(quota: Quota, default: Quota) -> Quota:
    """Fill the limits that are not set from the default."""
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

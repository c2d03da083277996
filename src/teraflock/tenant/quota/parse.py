"""Parses a quota in the form of the settings: `projects=20 instances=100 ram=4TB gpus=16 gpus.V100-SXM2=4`."""

from collections.abc import Callable, Mapping
from typing import Final

from teraflock.base.errors import BadInput
from teraflock.base.quantities import parse_memory_bytes
from teraflock.tenant.model import OrganisationQuota, Quota

GPU_PREFIX: Final = "gpus."
HINT: Final = (
    "Write `projects=20 instances=100 vcpus=1000 ram=4TB disk=20TB images=500GB data=1TB ports=100 networks=40"
    " addresses=8 gpus=16 gpus.V100-SXM2=4`."
    " Names that you leave out have no limit"
)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        raise BadInput(f"`{text}` is not a whole number", hint=HINT)
    return int(text)


_FIELDS: Final[Mapping[str, tuple[str, Callable[[str], int]]]] = {
    "projects": ("projects", _count),
    "instances": ("instances", _count),
    "vcpus": ("vcpus", _count),
    "ram": ("ram_bytes", parse_memory_bytes),
    "disk": ("disk_bytes", parse_memory_bytes),
    "images": ("images_bytes", parse_memory_bytes),
    "data": ("data_bytes", parse_memory_bytes),
    "ports": ("ports", _count),
    "addresses": ("addresses", _count),
    "networks": ("networks", _count),
    "gpus": ("gpus_default", _count),
}


def parse_organisation_quota(text: str) -> OrganisationQuota:
    return OrganisationQuota(**_limits(text), gpus=_gpus(text))


def parse_project_quota(text: str) -> Quota:
    limits = _limits(text)
    if "projects" in limits:
        raise BadInput(
            "A project quota cannot limit `projects`", hint="Set it in `default_organisation_quota`"
        )
    return Quota(**limits, gpus=_gpus(text))


def _limits(text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, value in _pairs(text):
        if not name.startswith(GPU_PREFIX):
            field, parse = _FIELDS[name]
            found[field] = parse(value)
    return found


def _gpus(text: str) -> dict[str, int]:
    return {
        name.removeprefix(GPU_PREFIX): _count(value)
        for name, value in _pairs(text)
        if name.startswith(GPU_PREFIX)
    }


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs = [word.partition("=") for word in text.replace(",", " ").split()]
    for name, equals, _ in pairs:
        if not equals or not (name in _FIELDS or name.startswith(GPU_PREFIX)):
            raise BadInput(f"Unknown limit `{name}` in a quota", hint=HINT)
    return [(name, value) for name, _, value in pairs]

"""The options for the size of an instance, shared by `tera launch`, `resize` and `quote`."""

from typing import Any

import click

from teraflock.base.errors import BadInput
from teraflock.base.limits import (
    DISK_BYTES_MAX,
    DISK_BYTES_MIN,
    GPUS_MAX,
    RAM_BYTES_MAX,
    RAM_BYTES_MIN,
    VCPUS_MAX,
)
from teraflock.base.quantities import bytes_text, parse_memory_bytes
from teraflock.cli.options import with_options
from teraflock.wire.instance import ModeWord
from teraflock.wire.shape import ShapeRequest

shape_options = with_options(
    click.option(
        "--gpu", default="", metavar="MODEL", help="The GPU model, by any of its names: `V100`, `A100 80GB`."
    ),
    click.option("--gpus", type=click.IntRange(0, GPUS_MAX), metavar="N", help="The number of GPUs."),
    click.option("--shape", default="", metavar="NAME", help="A named size. `tera shapes` lists them."),
    click.option("--vcpus", type=click.IntRange(1, VCPUS_MAX), metavar="N", help="The number of vCPUs."),
    click.option("--ram", metavar="GB", help="Memory: `16`, `16GB` or `512MB`."),
    click.option("--disk", metavar="GB", help="Disk: `50`, `50GB` or `1TB`."),
)


def shape_from(words: dict[str, Any]) -> ShapeRequest:
    """Build the request from the size options, and remove them from `words`."""
    gpu, gpus = words.pop("gpu"), words.pop("gpus")
    if gpu and gpus is None:
        gpus = 1
    if gpu and gpus == 0:
        raise BadInput(f"`--gpu {gpu}` and `--gpus 0` contradict each other", hint="Leave one of them out")
    return ShapeRequest(
        name=words.pop("shape"),
        gpu=gpu,
        gpus=gpus,
        vcpus=words.pop("vcpus"),
        ram_bytes=_size(words.pop("ram"), "--ram", RAM_BYTES_MIN, RAM_BYTES_MAX),
        disk_bytes=_size(words.pop("disk"), "--disk", DISK_BYTES_MIN, DISK_BYTES_MAX),
    )


def _size(text: str | None, option: str, least: int, most: int) -> int | None:
    if text is None:
        return None
    size = parse_memory_bytes(text)
    if size < least:
        raise BadInput(f"`{option} {text}` is too small", hint=f"Use at least {least >> 20} MB")
    if size > most:
        raise BadInput(f"`{option} {text}` is too large", hint=f"Use at most {bytes_text(most)}")
    return size


def mode_from(mode: ModeWord | None, *, spot: bool) -> ModeWord:
    if spot and mode not in (None, "spot"):
        raise BadInput(f"`--spot` and `--mode {mode}` contradict each other", hint="Leave one of them out")
    return "spot" if spot else mode or "on-demand"

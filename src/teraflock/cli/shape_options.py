"""The size of an instance as options, for `tera launch` and `tera resize` alike."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from teraflock.base.errors import BadInput
from teraflock.base.quantities import bytes_text, parse_memory_bytes
from teraflock.wire.shape import ShapeRequest

F = TypeVar("F", bound=Callable[..., Any])
RAM_BYTES_MIN: Final = 64 << 20
DISK_BYTES_MIN: Final = 512 << 20
_OPTIONS: Final = (
    click.option(
        "--gpu", default="", metavar="CARD", help="A card by any of its names: `V100`, `A100 80GB`."
    ),
    click.option("--gpus", type=click.IntRange(0, 64), metavar="N", help="How many whole cards."),
    click.option("--shape", default="", metavar="NAME", help="A named size; `tera shapes` lists them."),
    click.option("--vcpus", type=click.IntRange(1, 1024), metavar="N", help="Processors."),
    click.option("--ram", metavar="GB", help="Memory: `16`, `16GB` or `512MB`."),
    click.option("--disk", metavar="GB", help="Disk: `50`, `50GB` or `1TB`."),
)


def shape_options(function: F) -> F:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def shape_from(words: dict[str, Any]) -> ShapeRequest:
    """Takes its own words out of those of the command."""
    gpu, gpus = words.pop("gpu"), words.pop("gpus")
    if gpu and gpus is None:
        gpus = 1
    if gpu and gpus == 0:
        raise BadInput(f"`--gpu {gpu} --gpus 0` asks for a card and for none")
    return ShapeRequest(
        name=words.pop("shape"),
        gpu=gpu,
        gpus=gpus,
        vcpus=words.pop("vcpus"),
        ram_bytes=_size(words.pop("ram"), "--ram", RAM_BYTES_MIN),
        disk_bytes=_size(words.pop("disk"), "--disk", DISK_BYTES_MIN),
    )


def _size(text: str | None, option: str, least: int) -> int | None:
    if text is None:
        return None
    size = parse_memory_bytes(text)
    if size < least:
        raise BadInput(f"`{option} {text}` is too little", hint=f"It takes {least >> 20} MB at least")
    if size > 1 << 50:
        raise BadInput(f"`{option} {text}` is more than there can be", hint=f"At most {bytes_text(1 << 50)}")
    return size

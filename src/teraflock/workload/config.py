"""Models by config: a Hugging Face `config.json`, or the name of a public model whose config ships with Teraflock.

Needs no PyTorch and no weights: the widths of the config are put into the recorded family of its architecture
(`family.py`).
"""

import os
from functools import cache, lru_cache
from typing import Any, Final

import msgspec

from teraflock.base.errors import BadInput
from teraflock.workload.architecture import shape_of
from teraflock.workload.family import expanded, layers_min, read_family
from teraflock.workload.given import given
from teraflock.workload.shape import TRACE_HINT, ModelShape
from teraflock.workload.trace import Trace

DATA: Final = f"{os.path.dirname(__file__)}/data"  # noqa: PTH120 -- see zoo.FOLDER
FAMILIES: Final = f"{DATA}/families"
CONFIG_BYTES_MAX: Final = 1 << 20


def is_config_file(model: str) -> bool:
    return model.endswith(".json")


@cache
def named() -> dict[str, dict[str, Any]]:
    """The configs of public models that ship with Teraflock. `shape_named` reads one: reading all would slow a cold
    start."""
    with open(f"{DATA}/configs.json", "rb") as file:  # noqa: PTH123
        return msgspec.json.decode(file.read(), type=dict[str, dict[str, Any]])


@cache
def shape_named(name: str) -> ModelShape:
    return shape_of(named()[name], name)


@lru_cache(maxsize=64)
def read_config(path: str) -> ModelShape:
    data = given(path)
    try:
        if data is None:
            with open(path, "rb") as file:  # noqa: PTH123
                data = file.read(CONFIG_BYTES_MAX)
    except OSError as error:
        raise BadInput(f"`{path}` cannot be read: {error.strerror}") from None
    try:
        fields = msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.DecodeError:
        raise BadInput(f"`{path}` is not a Hugging Face config", hint="A config is a JSON object") from None
    return shape_of(fields, path)


def config_trace(shape: ModelShape, wanted: str, *, name: str) -> Trace | None:
    """The step of this model, or None if the variant was not recorded."""
    data = _family(shape.family, wanted)
    if data is None:
        return None
    family = read_family(data)
    least = layers_min(family)
    if min(shape.layers) < least:
        raise BadInput(
            f"`{name}`: a model of {min(shape.layers)} layer{'s' * (min(shape.layers) > 1)} is not supported",
            hint=f"The minimum is {least}. {TRACE_HINT}",
        )
    return expanded(family, shape.layers, shape.widths, name=name)


def variants_of_family(shape: ModelShape) -> list[str]:
    start = f"{shape.family}+"
    names = os.listdir(FAMILIES)  # noqa: PTH208
    return sorted(each[len(start) : -len(".family")] for each in names if each.startswith(start))


def _family(family: str, wanted: str) -> bytes | None:
    try:
        with open(f"{FAMILIES}/{family}+{wanted}.family", "rb") as file:  # noqa: PTH123
            return file.read()
    except FileNotFoundError:
        return None

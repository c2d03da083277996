"""Models by config: a Hugging Face `config.json`, or the name of a public model whose config ships here.

No PyTorch and no weights: the config's widths are put into the recorded family of its architecture (`family.py`).
"""

import os
from functools import cache
from typing import Any, Final

import msgspec

from teraflock.base.errors import BadInput
from teraflock.workload.family import LAYERS_MIN, expanded, read_family
from teraflock.workload.trace import Trace

DATA: Final = f"{os.path.dirname(__file__)}/data"  # noqa: PTH120 -- see zoo.FOLDER
FAMILIES: Final = f"{DATA}/families"
TYPES: Final = ("llama", "mistral", "qwen2", "qwen3")
SAME: Final = {"mistral": "llama"}
"""Architectures that run the same operations as another."""
HEAD_STEP: Final = 8
HEAD_MAX: Final = 128
"""Beyond, attention takes another kernel than was recorded."""
CONFIG_BYTES_MAX: Final = 1 << 20
_ASK: Final = "Record a script with it instead: `tera trace train.py -o job.trace`"


class Config(msgspec.Struct, frozen=True):
    """What a family needs to know of a model."""

    model_type: str
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    vocab_size: int
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    max_position_embeddings: int = 0
    tie_word_embeddings: bool = False
    attention_bias: bool = False

    @property
    def kv_heads(self) -> int:
        return self.num_key_value_heads or self.num_attention_heads

    @property
    def head(self) -> int:
        return self.head_dim or self.hidden_size // self.num_attention_heads

    @property
    def kv_elements_per_token(self) -> int:
        return 2 * self.num_hidden_layers * self.kv_heads * self.head

    @property
    def family(self) -> str:
        grouped = self.kv_heads != self.num_attention_heads
        kind = SAME.get(self.model_type, self.model_type)
        return f"{kind}{'-tied' * self.tie_word_embeddings}{'-gqa' * grouped}"


def is_config_file(model: str) -> bool:
    return model.endswith(".json")


@cache
def named() -> dict[str, Config]:
    """The public models that ship with their configs."""
    with open(f"{DATA}/configs.json", "rb") as file:  # noqa: PTH123
        return msgspec.json.decode(file.read(), type=dict[str, Config])


@cache
def read_config(path: str) -> Config:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            data = file.read(CONFIG_BYTES_MAX)
    except OSError as error:
        raise BadInput(f"`{path}` cannot be read: {error.strerror}") from None
    try:
        kind = msgspec.json.decode(data, type=dict[str, Any]).get("model_type")
    except msgspec.DecodeError:
        raise BadInput(f"`{path}` is not a Hugging Face config", hint="It is a JSON object") from None
    if kind not in TYPES:
        raise BadInput(
            f"`{path}`: configs of the type `{kind}` are not supported yet",
            hint=f"Supported: {', '.join(f'`{each}`' for each in TYPES)}. {_ASK}",
        )
    try:
        return checked_config(msgspec.json.decode(data, type=Config), path)
    except msgspec.ValidationError as error:
        raise BadInput(f"`{path}` is not complete: {error}") from None


def checked_config(config: Config, name: str) -> Config:
    sizes = (
        config.hidden_size, config.intermediate_size, config.num_hidden_layers, config.num_attention_heads,
        config.vocab_size, config.kv_heads, config.head,
    )  # fmt: skip
    if min(sizes) < 1 or max(sizes) > 1 << 24:
        raise BadInput(f"`{name}`: a width is not a number from 1 to {1 << 24:,}")
    if config.num_hidden_layers < LAYERS_MIN:
        raise BadInput(f"`{name}`: a model of {config.num_hidden_layers} layer is not supported", hint=_ASK)
    if config.num_attention_heads % config.kv_heads:
        raise BadInput(
            f"`{name}`: {config.num_attention_heads} heads cannot share {config.kv_heads} keys and values"
        )
    if config.head % HEAD_STEP or config.head > HEAD_MAX:
        raise BadInput(
            f"`{name}`: heads of {config.head} numbers are not supported",
            hint=f"Multiples of {HEAD_STEP} up to {HEAD_MAX} are. {_ASK}",
        )
    if config.attention_bias and config.model_type in ("llama", "qwen3"):
        raise BadInput(f"`{name}`: `attention_bias` is not supported for `{config.model_type}`", hint=_ASK)
    return config


def config_trace(config: Config, wanted: str, *, name: str) -> Trace | None:
    """The step of this model, or None where the variant was not recorded."""
    family = _family(config.family, wanted)
    if family is None:
        return None
    # Where every head has keys and values of its own, the family was recorded with as many of both.
    widths = {
        "hidden": config.hidden_size,
        "inter": config.intermediate_size,
        "kv": config.kv_heads,
        "group": config.num_attention_heads // config.kv_heads,
        "head": config.head,
        "vocab": config.vocab_size,
    }
    return expanded(read_family(family), config.num_hidden_layers, widths, name=name)


def variants_of_family(config: Config) -> list[str]:
    start = f"{config.family}+"
    names = os.listdir(FAMILIES)  # noqa: PTH208
    return sorted(each[len(start) : -len(".family")] for each in names if each.startswith(start))


def _family(family: str, wanted: str) -> bytes | None:
    try:
        with open(f"{FAMILIES}/{family}+{wanted}.family", "rb") as file:  # noqa: PTH123
            return file.read()
    except FileNotFoundError:
        return None

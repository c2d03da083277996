"""Names of models as hubs and their users write them: with an owner, a kind of tuning, or the date of a release."""

from collections.abc import Iterator
from typing import Final

TUNINGS: Final = frozenset({"base", "chat", "coder", "hf", "instruct", "it", "math", "thinking"})
"""Parts of a name that say how a model was tuned. Its sizes are those of the model without them."""
OTHER_NAMES: Final = {
    "gpt2-small": "gpt2", "distilbert-base": "distilbert", "distilbert-base-uncased": "distilbert",
    "distilbert-base-uncased-finetuned-sst-2-english": "distilbert",
    "unet-sd15": "unet-diffusion-sd15", "sd15": "unet-diffusion-sd15", "sd-1.5": "unet-diffusion-sd15",
    "sd1.5": "unet-diffusion-sd15", "stable-diffusion-1.5": "unet-diffusion-sd15",
    "stable-diffusion-v1-4": "unet-diffusion-sd15", "stable-diffusion-v1-5": "unet-diffusion-sd15",
    "sdxl": "unet-diffusion-sdxl", "stable-diffusion-xl": "unet-diffusion-sdxl",
    "stable-diffusion-xl-base-1.0": "unet-diffusion-sdxl",
    "mistral-7b-v0.3": "mistral-7b", "mixtral-8x7b-v0.1": "mixtral-8x7b", "mixtral-8x22b-v0.1": "mixtral-8x22b",
    "mistral-nemo": "mistral-nemo-12b", "mistral-nemo-2407": "mistral-nemo-12b",
    "mistral-small-24b-2501": "mistral-small-24b",
    "qwen2-1.5b": "qwen2.5-1.5b", "qwen2-7b": "qwen2.5-7b", "qwen2-72b": "qwen2.5-72b", "qwq-32b": "qwen2.5-32b",
    "qwen3-4b-2507": "qwen3-4b", "qwen3-30b-a3b-2507": "qwen3-30b-a3b", "qwen3-235b-a22b-2507": "qwen3-235b-a22b",
    "phi-1-5": "phi-1.5", "phi-3-mini-4k": "phi-3-mini", "phi-3-mini-128k": "phi-3.5-mini",
    "phi-3-medium-4k": "phi-3-medium",
    "smollm-135m": "smollm2-135m", "smollm-360m": "smollm2-360m", "smollm-1.7b": "smollm2-1.7b",
    "deepseek-6.7b": "deepseek-coder-6.7b", "tinyllama-1.1b-v1.0": "tinyllama-1.1b",
    "vicuna-7b-v1.5": "vicuna-7b", "vicuna-13b-v1.5": "vicuna-13b",
    "olmo-2-0425-1b": "olmo-2-1b", "olmo-2-1124-7b": "olmo-2-7b", "olmo-2-1124-13b": "olmo-2-13b",
    "olmo-2-0325-32b": "olmo-2-32b",
    "vit-base-patch16-224-in21k": "vit-base-patch16-224", "vit-large-patch16-224-in21k": "vit-large-patch16-224",
}  # fmt: skip
"""Written in lower case, with `-` in place of `_`, without owner and `TUNINGS`. Models of the same sizes share one
config: their context may differ."""


def forms(name: str) -> Iterator[str]:
    """What `name` may mean, the most literal form first: as it is, without its owner, and without its tuning."""
    whole = name.strip().lower().replace(" ", "")
    short = whole.rpartition("/")[2].removeprefix("meta-")
    untuned = "-".join(each for each in short.replace("_", "-").split("-") if each not in TUNINGS)
    for form in dict.fromkeys((whole, short, untuned)):
        dashed = form.replace("_", "-")
        yield from dict.fromkeys((form, form.replace("-", "_"), dashed, OTHER_NAMES.get(dashed, dashed)))
    yield untuned.replace("-", "")

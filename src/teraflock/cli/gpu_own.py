"""`tera gpus add` and `tera gpus remove`: manage your own GPU models."""

from pathlib import Path
from typing import Final

import click

from teraflock.app.home import home
from teraflock.app.own_cards import read_own_cards, write_own_cards
from teraflock.base.errors import BadInput, unknown_name
from teraflock.catalog.cards import cards_by_id, families
from teraflock.catalog.own import card_from
from teraflock.catalog.words import key_of
from teraflock.cli.output import remark

ADD_HELP: Final = """Add a GPU model that Teraflock does not know, from a file.

FILE has one `key: value` per line, or is a JSON object. `tera estimate --gpu NAME` then accepts the GPU model.
Required: name, generation, memory_gb, bandwidth_gbs, sms, and fp32_tflops or clock_mhz (the boost clock). Optional:
fp16_tflops, tf32_tensor_tflops, fp16_tensor_tflops, watts, nvlink_gbs, usable_memory_mib, memory_type, bf16. Rates
are dense and accumulate in fp32. The generation may name the chip, such as Ampere GA100. Adding a GPU model again
replaces it.

\b
Example, card.yaml:
  name: RTX 4080 laptop
  generation: Ada
  memory_gb: 12
  bandwidth_gbs: 432
  sms: 58
  fp32_tflops: 24.7
  fp16_tensor_tflops: 49.4
  tf32_tensor_tflops: 24.7
  watts: 150
"""


@click.command("add", help=ADD_HELP)
@click.argument("file", type=click.Path(path_type=Path))
def add(file: Path) -> None:
    try:
        card = card_from(file.read_text("utf-8"))
    except OSError as error:
        raise BadInput(f"`{file}` cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"`{file}` is not text") from None
    if key_of(card.id) in {key_of(each) for each in (*cards_by_id(), *families())}:
        raise BadInput(f"Teraflock already has a GPU model `{card.id}`", hint="Choose another name")
    others = [each for each in read_own_cards(home()) if key_of(each.id) != key_of(card.id)]
    write_own_cards(home(), [*others, card])
    remark(f"Added {card.id}. Use it with `tera estimate MODEL --batch N --gpu '{card.id}'`")


@click.command("remove")
@click.argument("name")
def remove(name: str) -> None:
    """Remove a GPU model that you added."""
    cards = read_own_cards(home())
    kept = [each for each in cards if key_of(each.id) != key_of(name)]
    if len(kept) == len(cards):
        raise unknown_name("own GPU model", name, [each.id for each in cards], see="`tera gpus` lists them")
    write_own_cards(home(), kept)
    remark(f"Removed {name}")

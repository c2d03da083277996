"""Which providers machines can be rented from, and how each driver was tested. A test compares it with the drivers."""

from collections.abc import Mapping
from typing import Final

import msgspec

from teraflock.base.errors import unknown_name

UNTESTED: Final = "untested live"
JUDGED: Final = f"judged by the provider's description; {UNTESTED}"
JUDGED_AND_SIGNED: Final = (
    f"judged by the provider's description; signatures compared with its SDK; {UNTESTED}"
)
MODELLED: Final = f"SDK as oracle: its models judge requests and replies; {UNTESTED}"
MODELLED_AND_SIGNED: Final = (
    f"SDK as oracle: its models judge requests and replies, signatures compared; {UNTESTED}"
)
GENERATED: Final = f"judged by the types of the provider's own client, typed by hand; {UNTESTED}"
NOT_YET: Final = "there is no driver yet"
NAMED: Final = "the name of a machine's disk"
JUDGES: Final = {"moto": "moto", "SDK as oracle": "SDK", "client": "client", "description": "API description"}
NO_PRICES: Final = "prices, which the operator sets"


class Renting(msgspec.Struct, frozen=True, kw_only=True):
    """What Teraflock can do with an account at a provider."""

    launch: bool = False
    catalog: bool = False
    """Reads types and prices from the provider."""
    stock: bool = False
    """The provider lists only what is free at the moment."""
    spot: str = ""
    """The modes besides on-demand that can be launched; empty: none."""
    stop: bool = False
    """A stopped machine keeps its disk."""
    notice: bool = False
    """Machines report that the provider will take them back."""
    time_limit: bool = False
    """The provider itself ends machines after `hours_max`."""
    currency: str = "USD"
    """What the provider charges in. Where it is not USD, international accounts may differ."""
    tested: str = ""
    """How the driver was tested; empty: there is none."""
    missing: str = ""
    """What is missing."""
    assumed: str = ""
    """What the driver takes for granted and no document of the provider confirms."""

    @property
    def tested_in_short(self) -> str:
        """What judged the driver, for tables."""
        judge = next((short for words, short in JUDGES.items() if words in self.tested), "")
        return f"{judge}, not live" if judge and UNTESTED in self.tested else judge


RENTING: Final[Mapping[str, Renting]] = {
    "lambda": Renting(
        launch=True,
        stock=True,
        catalog=True,
        tested=JUDGED,
        missing="stop and spot, which the provider does not have",
    ),
    "vast": Renting(
        launch=True,
        stock=True,
        catalog=True,
        spot="bid",
        tested=JUDGED,
        missing="stop: a stopped machine may not come back",
    ),
    "runpod": Renting(
        launch=True,
        stock=True,
        catalog=True,
        tested=JUDGED,
        missing="spot; stop: a stopped machine may come back without GPUs",
        assumed="machines get programs over SSH and make their own host key: the first one they show is trusted",
    ),
    "aws": Renting(
        launch=True,
        catalog=True,
        spot="spot",
        stop=True,
        notice=True,
        tested=f"moto, and judged by botocore's model of EC2; {UNTESTED}",
        missing="types with several network cards, which get no public address by themselves",
    ),
    "gcp": Renting(
        launch=True,
        catalog=True,
        spot="spot",
        stop=True,
        notice=True,
        time_limit=True,
        tested=JUDGED,
        missing="N1 machines with attached GPUs",
    ),
    "azure": Renting(
        launch=True,
        catalog=True,
        spot="spot",
        stop=True,
        notice=True,
        tested=f"judged by the provider's description of 2019; {UNTESTED}",
        missing="sizes with a part of a GPU",
    ),
    "tencent": Renting(
        launch=True,
        stock=True,
        currency="CNY",
        catalog=True,
        spot="spot",
        stop=True,
        notice=True,
        time_limit=True,
        tested=JUDGED_AND_SIGNED,
        missing="types whose GPU is not in our table",
    ),
    "alibaba": Renting(
        launch=True,
        currency="CNY",
        catalog=True,
        spot="spot",
        stop=True,
        notice=True,
        time_limit=True,
        tested=f"SDK as oracle: its models judge replies, its metadata requests, signatures compared; {UNTESTED}",
        missing="networks: the operator names a virtual switch and a security group per region",
    ),
    "oci": Renting(
        launch=True,
        spot="spot",
        tested=MODELLED_AND_SIGNED,
        missing=f"{NO_PRICES}; stop: a stopped machine with GPUs stays billed; interruption notices",
        assumed=f"{NAMED} ends in ` (Boot Volume)`, as seen in others' logs",
    ),
    "ibm": Renting(
        launch=True, spot="spot", tested=MODELLED, missing=f"{NO_PRICES}; stop; interruption notices"
    ),
    "huawei": Renting(
        launch=True,
        currency="CNY",
        spot="spot",
        time_limit=True,
        tested=MODELLED_AND_SIGNED,
        missing=f"{NO_PRICES}; stop; interruption notices",
        assumed=f"{NAMED} begins with its name, as seen in others' logs",
    ),
    "baidu": Renting(
        launch=True,
        currency="CNY",
        tested=MODELLED_AND_SIGNED,
        missing=f"{NO_PRICES}; stop and spot",
        assumed="the disk of a machine has its tags, and its address has its name: from memory",
    ),
    "paperspace": Renting(
        launch=True,
        stock=True,
        stop=True,
        tested=JUDGED,
        missing=f"{NO_PRICES}; spot, which the provider does not have",
    ),
    "genesis": Renting(
        launch=True,
        stock=True,
        stop=True,
        tested=GENERATED,
        missing=f"{NO_PRICES}; spot, which the provider does not have",
        assumed="the types are those of the client of 2024-09; that date is not confirmed",
    ),
}


def renting(provider: str) -> Renting:
    return RENTING.get(provider, Renting(missing=NOT_YET))


def check_provider(provider: str) -> None:
    if provider not in RENTING:
        names = ", ".join(f"`{each}`" for each in sorted(RENTING))
        raise unknown_name("provider of accounts", provider, RENTING, see=f"Accounts are possible at {names}")

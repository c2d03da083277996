"""Orders of tenants: checks, and the size that an order means on the existing hosts. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from teraflock.base.errors import BadInput, UnknownName, unknown_name
from teraflock.base.limits import (
    ALTERNATIVES_MAX,
    DISK_BYTES_MIN,
    INSTANCES_PER_LAUNCH_MAX,
    LABELS_MAX,
    RAM_BYTES_MIN,
    TIME_LIMIT_SECONDS_MAX,
    TIME_LIMIT_SECONDS_MIN,
    USER_DATA_BYTES_MAX,
)
from teraflock.base.names import check_label_key, check_name, check_variable
from teraflock.base.quantities import GIB, bytes_text, count_text
from teraflock.base.size import Size
from teraflock.catalog.cards import cards_by_id
from teraflock.catalog.names import find_cards, find_parts
from teraflock.fleet.model import Host
from teraflock.fleet.shapes import DISK_BYTES, RAM_BYTES_PER_VCPU, card_need, named_shapes
from teraflock.instance.model import Access, PlaceWish, RestartPolicy

SSH_KEY: Final = re.compile(
    r"(ssh-(ed25519|rsa)|ecdsa-sha2-nistp(256|384|521)|sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com)"
    r" [A-Za-z0-9+/]+=*( [^\r\n\0]*)?"
)
MODES: Final = ("on-demand", "spot", "bid")
PLACE_WISHES_MAX: Final = 16
DATASETS_MAX: Final = 16
NUMBERED_NAME_LENGTH_MAX: Final = 59
"""A name of 63 characters less `-100`."""
MODEL_HINT: Final = "Set `gpu`, or `--gpu MODEL` on the command line. `tera shapes` lists the models"


class ShapeWish(msgspec.Struct, frozen=True, kw_only=True):
    """The size that a tenant asks for. Missing parts get defaults."""

    name: str = ""
    gpu: str = ""
    gpus: int | None = None
    vcpus: int | None = None
    ram_bytes: int | None = None
    disk_bytes: int | None = None


class RentalWish(msgspec.Struct, frozen=True, kw_only=True):
    """A machine to rent if those before it cannot be had. The fields mean what they mean in an order."""

    site: str = ""
    provider: str = ""
    type: str = ""
    shape: ShapeWish = ShapeWish()
    region: str = ""
    zone: str = ""
    mode: str = "on-demand"
    bid_micros_per_hour: int | None = None
    price_limit_micros_per_hour: int | None = None
    offer: str = ""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    name: str | None = None
    shape: ShapeWish = ShapeWish()
    image: str = "base"
    access: Access = Access.SSH
    command: tuple[str, ...] = ()
    user_data: str = ""
    authorized_keys: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}
    environment: Mapping[str, str] = {}
    mode: str = "on-demand"
    time_limit_seconds: int | None = None
    delete_when_done: bool = False
    graphics: bool = False
    """Give it the libraries that draw on a GPU, too."""
    instances: int = 1
    host: str | None = None
    site: str = ""
    """Empty: any site with own hosts."""
    provider: str = ""
    """Rent at one of the provider's accounts that the project may use."""
    type: str = ""
    """The machine type to rent."""
    burst: bool = False
    """Use own hosts while they have room, and rent otherwise."""
    region: str = ""
    zone: str = ""
    bid_micros_per_hour: int | None = None
    price_limit_micros_per_hour: int | None = None
    offer: str = ""
    """The offer of the catalog that the order was made from."""
    alternatives: tuple[RentalWish, ...] = ()
    """What to rent instead, in this order, where the machine cannot be had or does not work."""
    security_groups: tuple[str, ...] = ()
    """Names. Empty: the project's `default` group."""
    networks: tuple[str, ...] = ()
    """Names, one for each interface. Empty: the network `default`. The same words as `InterfaceWish`."""
    subnets: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    place: PlaceWish = PlaceWish()
    data: tuple[str, ...] = ()
    """Datasets that the instance reads."""
    volumes: tuple[str, ...] = ()
    """Volumes that the instance gets, as `NAME` or `NAME:PATH`."""
    copies_data: bool = False
    """The caller copies them to a rented machine, which cannot share them."""
    queue: bool = False
    """Wait for room instead of failing."""
    priority: int = 0
    """Among the queued launches of the project. Higher ones start first."""
    restart_policy: RestartPolicy | None = None
    """None: `same-host` on an own host, `elsewhere` on a spot machine with alternatives, and `never` on other rented
    machines, because creating them again costs money."""


def wishes(order: Order) -> tuple[Order, ...]:
    """The order, and the same order for each of its alternatives."""
    alone = replace(order, alternatives=())
    others = (msgspec.structs.asdict(each) for each in order.alternatives)
    return (alone, *(replace(alone, **each) for each in others))


def bid_and_limit(
    mode: str, *, rents: bool, bid: int | None, limit: int | None
) -> tuple[int | None, int | None]:
    """What an order offers and pays at most. For a rented spot machine, a bid is the highest price: the provider sets
    the price, and ends the machine when it is higher."""
    if mode != "spot" or not rents or bid is None:
        return bid, limit
    return None, bid if limit is None else min(bid, limit)


def check(order: Order) -> None:
    """Refuse an order that cannot be carried out, before anything is looked up."""
    if len(order.alternatives) > ALTERNATIVES_MAX:
        raise BadInput(
            f"{len(order.alternatives)} alternatives are too many", hint=f"Use up to {ALTERNATIVES_MAX}"
        )
    if order.alternatives and not all(each.type or each.provider for each in wishes(order)):
        raise BadInput(
            "Alternatives are other machines to rent, and this order rents none",
            hint="Give a provider and a machine type for each of them",
        )
    for each in wishes(order):
        _check_one(each)


def _check_one(order: Order) -> None:
    if order.name is not None:
        check_name(order.name, "an instance")
    if not 1 <= order.instances <= INSTANCES_PER_LAUNCH_MAX:
        raise BadInput(
            f"{order.instances} instances cannot be launched at once",
            hint=f"Ask for 1 to {INSTANCES_PER_LAUNCH_MAX}",
        )
    if order.name is not None and order.instances > 1 and len(order.name) > NUMBERED_NAME_LENGTH_MAX:
        raise BadInput(
            f"`{order.name}` is too long: each instance gets a number after the name",
            hint=f"Use up to {NUMBERED_NAME_LENGTH_MAX} characters",
        )
    if order.mode not in MODES:
        raise BadInput(f"Unknown mode `{order.mode[:40]}`", hint=f"One of: {', '.join(MODES)}")
    if len(order.data) > DATASETS_MAX:
        raise BadInput(
            f"An instance can have at most {DATASETS_MAX} datasets, not {len(order.data)}", hint="Use fewer"
        )
    if order.volumes and order.instances > 1:
        raise BadInput(
            "Only one instance can have a volume", hint="Launch them one by one, each with its own"
        )
    _check_command(order)
    _check_place(order)
    check_place_wish(order)
    _check_bid(order)
    _check_end(order)
    _check_texts(order)


def _check_command(order: Order) -> None:
    if order.access == Access.COMMAND and not order.command:
        raise BadInput(
            "An instance with access `command` needs a command",
            hint="Set `command` in the API, or use `--command` on the command line",
        )
    if order.command and order.access != Access.COMMAND:
        raise BadInput(
            "Only access `command` runs a command",
            hint="Set `access` to `command`, or run the command once the instance is up",
        )


def _check_place(order: Order) -> None:
    if order.type and not (order.site or order.provider):
        raise BadInput("A machine type needs a site", hint="Name the site that rents it: `--site NAME`")
    if order.provider and (order.site or order.host):
        raise BadInput(
            "`--provider` cannot be combined with `--site` or `--host`", hint="Leave one of them out"
        )
    if order.provider and not (order.type or order.shape.gpu):
        raise BadInput(
            "`--provider` needs a machine type or a GPU", hint="Add `--type TYPE` or `--gpu MODEL`"
        )
    if order.burst and not (order.type or order.provider):
        raise BadInput(
            "`--burst` needs a provider and a machine type", hint="Add `--provider NAME` and `--type TYPE`"
        )
    if order.type and order.host:
        raise BadInput(
            "`--host` selects an own host and `--type` rents a machine", hint="Use only one of them"
        )
    if order.type and order.shape != ShapeWish():
        raise BadInput(
            f"The machine type `{order.type[:40]}` already sets GPUs, vCPUs, memory and disk",
            hint="Leave out the size, or leave out `--type`",
        )
    only_rented = {
        "--region": order.region,
        "--zone": order.zone,
        "--price-max": order.price_limit_micros_per_hour,
    }
    if not (order.type or order.provider) and (
        given := [name for name, value in only_rented.items() if value]
    ):
        raise BadInput(
            f"`{given[0]}` works only with rented machines", hint="Choose one with `--site NAME --type TYPE`"
        )


def check_place_wish(order: Order) -> None:
    """Refuse contradicting wishes about own hosts, and such wishes for rented machines."""
    wish, rents = order.place, bool(order.type or order.provider)
    if rents and (wish != PlaceWish() or order.queue):
        raise BadInput(
            "`--on`, `--not-with`, `--spread`, `--pack`, `--together` and `--queue` work only with own hosts",
            hint="Leave them out, or leave out `--type` and `--provider`",
        )
    if sum((bool(wish.spread), wish.pack, wish.together)) > 1:
        raise BadInput(
            "`--spread`, `--pack` and `--together` contradict each other", hint="Use only one of them"
        )
    if len(wish.on) > PLACE_WISHES_MAX or len(wish.not_with) > PLACE_WISHES_MAX:
        raise BadInput(
            "Too many conditions for the host", hint=f"Use up to {PLACE_WISHES_MAX} of each option"
        )
    if order.priority and not order.queue:
        raise BadInput("`--priority` needs `--queue`", hint="Add `--queue`")
    _check_storable((*wish.on.keys(), *wish.on.values(), *wish.not_with))


def _check_bid(order: Order) -> None:
    if order.mode == "bid" and order.bid_micros_per_hour is None:
        raise BadInput("`--mode bid` needs a price per hour", hint="Add it, for example `--bid 1.20`")
    if order.mode != "bid" and order.bid_micros_per_hour is not None:
        raise BadInput(
            "`--bid` needs `--mode bid`", hint="With `--mode spot`, `--bid` works only for rented machines"
        )


def _check_end(order: Order) -> None:
    limit = order.time_limit_seconds
    if limit is not None and not TIME_LIMIT_SECONDS_MIN <= limit <= TIME_LIMIT_SECONDS_MAX:
        raise BadInput(
            f"A time limit of {limit} s is not possible",
            hint=f"Use {TIME_LIMIT_SECONDS_MIN} s to {TIME_LIMIT_SECONDS_MAX // 86_400} days",
        )
    if order.delete_when_done and order.access != Access.COMMAND and limit is None:
        raise BadInput(
            "`--rm` deletes an instance when its command ends or its time limit is reached, and this one has neither",
            hint="Give it a command or `--time-limit`",
        )


def _check_texts(order: Order) -> None:
    if len(order.user_data.encode("utf-8", "surrogatepass")) > USER_DATA_BYTES_MAX:
        raise BadInput(
            f"The user-data is larger than {USER_DATA_BYTES_MAX // 1024} KB",
            hint="Use a short script that downloads the rest, or make an image",
        )
    if order.user_data and not order.user_data.startswith("#!"):
        raise BadInput(
            "The user-data is not a script: its first line must start with `#!`",
            hint="Start it with `#!/bin/sh` or `#!/usr/bin/python3`; `#cloud-config` is not supported",
        )
    for key in order.authorized_keys:
        if not SSH_KEY.fullmatch(key):
            raise BadInput(
                f"`{key[:40]}` is not a public SSH key",
                hint="Public keys start with `ssh-ed25519` or `ssh-rsa`",
            )
    check_labels(order.labels)
    for name in order.environment:
        check_variable(name)
    _check_storable((*order.command, order.user_data, *order.environment.values()))


def check_labels(labels: Mapping[str, str]) -> None:
    if len(labels) > LABELS_MAX:
        raise BadInput(
            f"An instance can have at most {LABELS_MAX} labels, not {len(labels)}", hint="Remove some of them"
        )
    for name in labels:
        check_label_key(name)
    _check_storable(labels.values())


def _check_storable(texts: Iterable[str]) -> None:
    if any("\0" in text or _has_lone_surrogate(text) for text in texts):
        raise BadInput(
            "A text contains a character that cannot be stored",
            hint="Remove NUL characters and lone surrogates",
        )


def _has_lone_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def shape_of(wish: ShapeWish, hosts: Sequence[Host]) -> Size:
    """The size that a tenant gets on these hosts for a `ShapeWish`."""
    need = _base_need(wish, hosts)
    vcpus = wish.vcpus if wish.vcpus is not None else need.vcpus
    ram = wish.ram_bytes
    if ram is None:
        ram = need.ram_bytes if need.gpus or wish.name else vcpus * RAM_BYTES_PER_VCPU
    return _checked(
        Size(
            gpu=need.gpu,
            gpus=need.gpus,
            vcpus=vcpus,
            ram_bytes=ram,
            disk_bytes=wish.disk_bytes if wish.disk_bytes is not None else need.disk_bytes,
        )
    )


def changed_shape(shape: Size, wish: ShapeWish, hosts: Sequence[Host]) -> Size:
    """A size with the changes of a `ShapeWish`."""
    if wish.name:
        return shape_of(wish, hosts)
    gpus = wish.gpus if wish.gpus is not None else (shape.gpus or 1 if wish.gpu else shape.gpus)
    card = card_named(wish.gpu, hosts, gpus) if wish.gpu else shape.gpu
    if gpus and not card:
        raise BadInput(f"No GPU model is set for {count_text(gpus, 'GPU')}", hint=MODEL_HINT)
    return _checked(
        replace(
            shape,
            gpu=card if gpus else "",
            gpus=gpus,
            vcpus=wish.vcpus if wish.vcpus is not None else shape.vcpus,
            ram_bytes=wish.ram_bytes if wish.ram_bytes is not None else shape.ram_bytes,
            disk_bytes=wish.disk_bytes if wish.disk_bytes is not None else shape.disk_bytes,
        )
    )


def _base_need(wish: ShapeWish, hosts: Sequence[Host]) -> Size:
    if wish.name:
        return _named_need(wish, hosts)
    gpus = wish.gpus if wish.gpus is not None else (1 if wish.gpu else 0)
    if not gpus:
        return Size(vcpus=1, ram_bytes=RAM_BYTES_PER_VCPU, disk_bytes=DISK_BYTES)
    if not wish.gpu:
        raise BadInput(f"No GPU model is set for {count_text(gpus, 'GPU')}", hint=MODEL_HINT)
    need = card_need(hosts, card_named(wish.gpu, hosts, gpus), gpus)
    if need is None:
        model = card_named(wish.gpu, hosts, 1)
        most = max(sum(1 for each in host.gpus if each.gpu == model) for host in hosts)
        raise BadInput(
            f"No host has {gpus} GPUs of the model `{model}`", hint=f"Ask for up to {most} in one instance"
        )
    return need


def _named_need(wish: ShapeWish, hosts: Sequence[Host]) -> Size:
    named = {shape.name: shape.need for shape in named_shapes(hosts)}
    if wish.name not in named:
        raise unknown_name("shape", wish.name, named, see="`tera shapes` lists them")
    if wish.gpu or wish.gpus:
        raise BadInput(
            f"The shape `{wish.name}` already sets the GPUs",
            hint="Leave out `gpu` and `gpus`, or leave out the shape",
        )
    return named[wish.name]


def card_named(name: str, hosts: Sequence[Host], count: int) -> str:
    """The GPU model that a name means. If there are several, the one of which most hosts have enough."""
    here: dict[str, int] = {}
    for host in hosts:
        for gpu in {each.gpu for each in host.gpus}:
            here.setdefault(gpu, 0)
            here[gpu] += host.alike * (sum(1 for each in host.gpus if each.gpu == gpu) >= count)
    if name in here:
        return name
    try:
        slices = {f"{card.id}:{part.profile}" for card, part in find_parts(name)}
        meant = slices or {card.id for card in find_cards(name)}
    except UnknownName as error:
        raise unknown_name("GPU", name, [*here, *(card.name for card in cards_by_id().values())]) from error
    found = [gpu for gpu in here if gpu in meant]
    if not found:
        offered = ", ".join(f"`{gpu}`" for gpu in sorted(here)) or "none"
        raise BadInput(f"No host has the GPU model `{name}`", hint=f"Available models: {offered}")
    return max(found, key=lambda gpu: (here[gpu], gpu))


def _checked(shape: Size) -> Size:
    if shape.gpus < 0:
        raise BadInput(f"{shape.gpus} GPUs are not possible", hint="Use 0 or more")
    if shape.vcpus < 1:
        raise BadInput("An instance needs at least one vCPU", hint="Use `--vcpus 1` or more")
    if shape.ram_bytes < RAM_BYTES_MIN:
        raise BadInput(f"{bytes_text(shape.ram_bytes)} RAM is too little", hint="Use 64 MB or more")
    if shape.disk_bytes < DISK_BYTES_MIN:
        raise BadInput(f"A disk of {bytes_text(shape.disk_bytes)} is too small", hint="Use 512 MB or more")
    return shape


def shape_text(shape: Size) -> str:
    cards = f"{shape.gpus}× {shape.gpu}, " if shape.gpus else ""
    ram = f"{shape.ram_bytes // GIB} GB" if shape.ram_bytes % GIB == 0 else bytes_text(shape.ram_bytes)
    return f"{cards}{shape.vcpus} vCPU, {ram} RAM, {bytes_text(shape.disk_bytes)} disk"

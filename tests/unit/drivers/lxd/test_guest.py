"""Conversion of a machine to the engine's configuration."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from teraflock.drivers.lxd import confinement, guest, names
from teraflock.drivers.lxd.guest import HostKey
from teraflock.drivers.lxd.names import Names
from teraflock.fleet.model import GpuKind
from teraflock.host.slicing import SliceNode
from teraflock.instance.driver import GpuSlot, Handle, Machine, Network, Port
from teraflock.instance.model import InstanceId
from teraflock.tenant.model import ProjectId

OURS = Names("test01")
CONFINED = confinement.settings(7)
HOST = guest.GuestHost(confined=CONFINED)
KEY = HostKey("PRIVATE\n", "ssh-ed25519 AAAA")
NETWORK = Network(project_id=ProjectId("prj_one"), number=1, subnet="10.128.16.0/20", gateway="10.128.16.1")
GPUS = st.lists(
    st.one_of(
        st.integers(0, 255).map(lambda bus: GpuSlot(f"0000:{bus:02x}:00.0", GpuKind.PHYSICAL)),
        st.uuids().map(lambda uuid: GpuSlot(f"0000:41:00.0/MIG-{uuid}", GpuKind.MIG)),
    ),
    max_size=8,
    unique=True,
).map(tuple)
PORTS = st.lists(
    st.builds(Port, host_port=st.integers(1, 65535), guest_port=st.integers(1, 65535)), max_size=5
).map(tuple)


def machine(**changes: object) -> Machine:
    values: dict[str, object] = {
        "handle": Handle(InstanceId("ins_0123456789abcdef"), "here"),
        "hostname": "box",
        "image": "img_base",
        "vcpus": 2,
        "ram_bytes": 1 << 30,
        "disk_bytes": 10 << 30,
        "network": NETWORK,
        "address": "10.128.16.9",
    }
    return Machine(**(values | changes))  # type: ignore[arg-type]


DRIVERS = st.sampled_from(("", "/srv/nvidia/now"))


def host_with(gpus: tuple[GpuSlot, ...], driver: str) -> guest.GuestHost:
    """A host on which slice number n has the nodes 2n and 2n + 1."""
    uuids = [slot.slot.partition("/")[2] for slot in gpus if slot.kind == GpuKind.MIG]
    nodes = {uuid: (SliceNode(234, 2 * n), SliceNode(234, 2 * n + 1)) for n, uuid in enumerate(uuids)}
    return guest.GuestHost(confined=CONFINED, driver=driver, slices=nodes if driver else {})


@given(gpus=GPUS, driver=DRIVERS)
def test_each_card_is_named_exactly_and_brings_the_driver(gpus: tuple[GpuSlot, ...], driver: str) -> None:
    host = host_with(gpus, driver)
    body = guest.body(machine(gpus=gpus), OURS, KEY, "mould", host)
    devices: dict[str, dict[str, str]] = body["devices"]  # type: ignore[assignment]
    config: dict[str, str] = body["config"]  # type: ignore[assignment]
    cards = [device for device in devices.values() if device["type"] == "gpu"]
    named = [
        "/".join(device[key] for key in ("pci", "mig.uuid", "user.slice") if key in device)
        for device in cards
    ]
    assert named == [slot.slot for slot in gpus], (
        "no duplicates, and no device without a name, which would add all cards"
    )
    kinds = ["physical" if driver else str(slot.kind) for slot in gpus]
    assert [device["gputype"] for device in cards] == kinds
    opened = [device["path"] for device in devices.values() if device["type"] == "unix-char"]
    assert opened == [node.path for nodes in host.slices.values() for node in nodes], (
        "the nodes of its slices, no more"
    )
    assert guest.sighting({**body, "status": "Stopped"}, "here").slots == tuple(
        sorted(slot.slot for slot in gpus)
    )
    disks = {device["source"]: device for device in devices.values() if "source" in device}
    assert ("nvidia.runtime" in config) == (bool(gpus) and not driver), "the engine provides the libraries"
    assert disks.keys() == ({driver} if gpus and driver else set()), (
        "either the engine or our folder provides the libraries"
    )
    assert all(disk["readonly"] == "true" for disk in disks.values())


@given(before=GPUS, after=GPUS, vcpus=st.integers(1, 256), ram=st.integers(1, 1 << 44), driver=DRIVERS)
def test_a_resize_brings_exactly_what_a_new_machine_would_have(
    before: tuple[GpuSlot, ...], after: tuple[GpuSlot, ...], vcpus: int, ram: int, driver: str
) -> None:
    first = guest.body(machine(gpus=before), OURS, KEY, "mould", host_with(before, driver))
    wanted, host = machine(gpus=after, vcpus=vcpus, ram_bytes=ram), host_with(after, driver)
    fresh = guest.body(wanted, OURS, KEY, "mould", host)
    resized = guest.resized({**first, "architecture": "x86_64"}, wanted, OURS, host)
    assert resized["config"] == fresh["config"]
    assert resized["devices"] == fresh["devices"]


@given(text=st.text())
def test_user_text_never_becomes_a_setting(text: str) -> None:
    changed = machine(
        hostname="other", user_data=text, command=(text,), environment={"X": text}, jupyter_token=text
    )
    config: dict[str, str] = guest.body(changed, OURS, KEY, "mould", HOST)["config"]  # type: ignore[assignment]
    plain: dict[str, str] = guest.body(machine(), OURS, KEY, "mould", HOST)["config"]  # type: ignore[assignment]
    for key in (config.keys() | plain.keys()) - {key for key in config if key.startswith("user.")}:
        assert config[key] == plain[key]
    assert config["security.privileged"] == config["security.nesting"] == config["security.devlxd"] == "false"
    assert not any(key.startswith("raw.") for key in config)
    if text:
        assert msgspec.json.decode(config["user.command"]) == [text]


@given(text=st.text(alphabet=st.sampled_from("a\r\n #{}%"), max_size=12))
def test_line_ends_are_distinguished_from_text(text: str) -> None:
    config: dict[str, str] = guest.body(machine(user_data=text), OURS, KEY, "mould", HOST)["config"]  # type: ignore[assignment]
    data = config.get("user.user-data", "")
    ends = config.get("user.user-data-ends", "").replace("n", "\n").replace("r", "\r")
    assert data + ends == text
    assert data == data.rstrip("\r\n")


@given(ports=PORTS)
def test_ports_round_trip(ports: tuple[Port, ...]) -> None:
    assert guest.ports_from(guest.ports_text(ports)) == ports


@given(
    vcpus=st.integers(1, 256),
    ram=st.integers(1, 1 << 44),
    disk=st.integers(1, 1 << 50),
    status=st.sampled_from(["Running", "Stopped", "Error", "Frozen", "Starting", "Aborting", "Somehow"]),
)
def test_sighting_matches_the_machine(vcpus: int, ram: int, disk: int, status: str) -> None:
    asked = machine(vcpus=vcpus, ram_bytes=ram, disk_bytes=disk)
    seen = guest.sighting({**guest.body(asked, OURS, KEY, "mould", HOST), "status": status}, "here")
    assert (seen.instance_id, seen.vcpus, seen.ram_bytes, seen.disk_bytes) == (asked.id, vcpus, ram, disk)
    expected = {"Running": "running", "Stopped": "stopped", "Error": "broken", "Frozen": "broken"}
    assert seen.seen == expected.get(status, "pending")


@given(one=st.text(min_size=1, max_size=20), other=st.text(min_size=1, max_size=20))
def test_names_of_two_networks_and_two_installations_differ(one: str, other: str) -> None:
    name = OURS.bridge(one)
    assert len(name) <= 15
    assert name.isalnum()
    assert name.startswith("tf")
    assert (name == OURS.bridge(other)) == (one == other)
    assert name != Names("test02").bridge(one)


@given(instance=st.from_regex(r"[a-z]{3}_[0-9a-z]{16}", fullmatch=True))
def test_hardware_address_is_locally_administered(instance: str) -> None:
    address = names.hardware_address("test01", instance)
    first = int(address.split(":")[0], 16)
    assert first & 0b11 == 0b10, "locally administered, and for one network card only"
    assert len(address) == 17
    assert len(names.machine_id(instance)) == 32


KEYS = st.from_regex(r"(limits|security|raw|nvidia|environment)\.[a-z]{1,8}", fullmatch=True)
NOT_OURS = st.from_regex(r"(user\.note|volatile|image)\.[a-z]{1,8}", fullmatch=True)
WORDS = st.text(max_size=8)
SERVERS = st.sampled_from(("lxd", "incus"))


def found(asked: Machine, server: str) -> dict[str, Any]:
    """Return the instance as the engine shows it."""
    made: dict[str, Any] = guest.body(
        asked, OURS, KEY, "mould", guest.GuestHost(confined=CONFINED, server=server)
    )
    return {**made, "status": "Running", "architecture": "x86_64"}


@given(gpus=GPUS, server=SERVERS, notes=st.dictionaries(NOT_OURS, WORDS))
def test_unchanged_guest_is_not_altered(
    gpus: tuple[GpuSlot, ...], server: str, notes: dict[str, str]
) -> None:
    shown = found(machine(gpus=gpus), server)
    shown["config"] |= notes
    seen = guest.sighting(shown, "here")
    assert not seen.altered, "values written by the engine, the guest or the image are not ours"
    assert seen.slots == tuple(sorted(slot.slot for slot in gpus))


@given(gpus=GPUS, server=SERVERS, data=st.data())
def test_any_outside_change_is_detected_and_undone_by_resize(
    gpus: tuple[GpuSlot, ...], server: str, data: st.DataObject
) -> None:
    asked = machine(gpus=gpus)
    given, shown = found(asked, server), found(asked, server)
    part = data.draw(st.sampled_from([shown["config"], *shown["devices"].values()]))
    settings = [key for key in part if not key.startswith("user.")]
    key = data.draw(st.one_of(KEYS, st.sampled_from(settings)))
    value = data.draw(st.one_of(WORDS, st.none()).filter(lambda value: value != part.get(key)))
    if value is None:
        part.pop(key)
    else:
        part[key] = value
    assert guest.sighting(shown, "here").altered
    back = {**shown, **guest.resized(shown, asked, OURS, guest.GuestHost(confined=CONFINED, server=server))}
    assert (back["config"], back["devices"]) == (given["config"], given["devices"])
    assert not guest.sighting(back, "here").altered


def test_guest_without_a_fingerprint_is_not_altered() -> None:
    shown = found(machine(), "lxd")
    del shown["config"][guest.FINGERPRINT]
    assert not guest.sighting(shown, "here").altered


def test_each_engine_has_its_own_key_to_close_the_guest_socket() -> None:
    assert found(machine(), "lxd")["config"]["security.devlxd"] == "false"
    assert found(machine(), "incus")["config"]["security.guestapi"] == "false"
    assert "security.devlxd" not in found(machine(), "incus")["config"], (
        "the other engine would reject the key"
    )


def test_a_guest_of_an_earlier_version_keeps_its_link_until_its_next_start() -> None:
    shown = found(machine(), "lxd")
    nic = shown["devices"]["eth0"]
    port = nic.pop("host_name")
    nic |= {"security.mac_filtering": "true", "security.ipv4_filtering": "true"}
    nic["ipv4.address"] = machine().address
    running = guest.resized(shown, machine(), OURS, HOST)
    assert running["devices"]["eth0"] == nic, "a new link would have no address in the guest"  # type: ignore[index]
    stopped = guest.resized({**shown, "status": "Stopped"}, machine(), OURS, HOST)
    assert stopped["devices"]["eth0"]["host_name"] == port  # type: ignore[index]


@given(address=st.ip_addresses(v=4), other=st.ip_addresses(v=4))
def test_every_address_has_its_own_port(address: object, other: object) -> None:
    port = OURS.port(str(address))
    assert len(port) <= 15
    assert port.startswith(OURS.port_prefix)
    assert (port == OURS.port(str(other))) == (address == other)
    assert not port.startswith(Names("test02").port_prefix)

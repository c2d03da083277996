"""Readings of cards: every value of NVML, slices with their own memory, and broken cards that hide no others."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.host.fake_nvml import FAULTS, FakeNvml, a_card, fail, in_slices, pynvml

from teraflock.drivers.lxd.telemetry import counters
from teraflock.fleet.telemetry.model import CARD_FIELDS, GuestCounters
from teraflock.host.readings import readings_of

SLOT = "0000:3a:00.0"


def busy_card(number: int) -> dict[str, Any]:
    def fields(wanted: list[Any]) -> list[Any]:
        return [
            SimpleNamespace(nvmlReturn=pynvml.NVML_SUCCESS, value=SimpleNamespace(ullVal=3)) for _ in wanted
        ]

    return {
        **a_card(number),
        "TotalEnergyConsumption": 5_000_000,
        "ClockInfo": lambda clock: 1980 if clock == pynvml.NVML_CLOCK_SM else 3201,
        "CurrentClocksEventReasons": 4,
        "FieldValues": fields,
    }


def test_every_value_is_read() -> None:
    (card,) = readings_of(FakeNvml(busy_card(0)), {SLOT: (79, 13)})
    assert {name: getattr(card, name) for name in CARD_FIELDS} == {
        "utilisation_percent": 7,
        "memory_utilisation_percent": 3,
        "memory_used_bytes": 5 << 20,
        "power_milliwatts": 61_500,
        "energy_millijoules": 5_000_000,
        "temperature_celsius": 41,
        "sm_clock_mhz": 1980,
        "memory_clock_mhz": 3201,
        "throttle_reasons": 4,
        "ecc_corrected": 0,
        "ecc_uncorrected": 0,
        "xid": 79,
        "nvlink_links": 12,
        "nvlink_sent_bytes": 3 * 1024,
        "nvlink_received_bytes": 3 * 1024,
    }
    assert (card.slot, card.uuid, card.memory_bytes) == (SLOT, "GPU-0", 81920 << 20)


def test_slices_have_their_own_memory() -> None:
    whole, first, second = readings_of(FakeNvml(in_slices(busy_card(0), {"3g.40gb": 40, "2g.20gb": 20})), {})
    assert whole.utilisation_percent is None
    assert [each.slot for each in (first, second)] == [f"{SLOT}/MIG-GPU-0-0", f"{SLOT}/MIG-GPU-0-1"]
    assert (first.memory_bytes, first.memory_used_bytes, first.utilisation_percent) == (40 << 20, 0, None)


@pytest.mark.parametrize("code", FAULTS)
@pytest.mark.parametrize("question", [*busy_card(0), "HandleByIndex"])
def test_a_broken_card_hides_no_other(code: int, question: str) -> None:
    found = readings_of(FakeNvml(busy_card(0), busy_card(1), faults={(0, question): code}), None)
    assert found[-1].slot == "0000:3b:00.0"
    assert len(found) == (1 if question in ("HandleByIndex", "PciInfo") else 2)


def test_an_old_driver_has_the_old_name_of_throttle_reasons() -> None:
    card = {
        **busy_card(0),
        "CurrentClocksEventReasons": lambda: fail(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND),
        "CurrentClocksThrottleReasons": 64,
    }
    assert readings_of(FakeNvml(card), None)[0].throttle_reasons == 64


def test_guests_are_read_from_the_engine_s_states() -> None:
    config = {"user.teraflock.id": "ins_1"}
    state = {
        "cpu": {"usage": 7},
        "memory": {"usage": 8},
        "disk": {"root": {"usage": -1}},
        "network": {"eth0": {"counters": {"bytes_received": 9, "bytes_sent": 10}}},
    }
    assert counters({"config": config, "state": state}) == GuestCounters(
        instance_id="ins_1", cpu_nanoseconds=7, ram_used_bytes=8, received_bytes=9, sent_bytes=10
    )
    for nothing in (None, {}, {"cpu": None, "disk": None, "network": None}):
        assert counters({"config": config, "state": nothing}) == GuestCounters(instance_id="ins_1")

"""Readings appear in Prometheus' format with DCGM's names, and hostile names cannot add lines."""

from datetime import UTC, datetime

from prometheus_client.parser import text_string_to_metric_families

from teraflock.api.card_metrics import readings_text
from teraflock.fleet.model import HostId
from teraflock.fleet.telemetry.model import CardReading, GuestReading, LastOfHost, LastReading

NOW = datetime(2026, 11, 16, tzinfo=UTC)


def text_of(name: str, *cards: CardReading) -> str:
    reading = LastReading(
        at=NOW, simulated=False, cards=cards, guests=(GuestReading(instance_id="ins_1", cpu_millicores=1500),)
    )
    return readings_text([LastOfHost(host_id=HostId("hst_1"), host=name, reading=reading)])


def test_cards_have_dcgm_names_units_and_labels() -> None:
    card = CardReading(
        slot="0000:01:00.0",
        name="NVIDIA H200",
        uuid="GPU-1",
        memory_bytes=100 << 20,
        memory_used_bytes=40 << 20,
        power_milliwatts=80_320,
        energy_millijoules=2**60 + 1,
        utilisation_percent=7,
    )
    text = text_of("lab", card)
    found = {each.name: each for each in text_string_to_metric_families(text)}
    values = {name: family.samples[0].value for name, family in found.items()}
    assert values["DCGM_FI_DEV_GPU_UTIL"] == 7
    assert (values["DCGM_FI_DEV_FB_USED"], values["DCGM_FI_DEV_FB_FREE"]) == (40, 60)
    assert values["DCGM_FI_DEV_POWER_USAGE"] == 80.32
    assert "# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter" in text
    assert "DCGM_FI_DEV_GPU_TEMP" not in found, "what cannot be read is left out"
    assert found["DCGM_FI_DEV_GPU_UTIL"].samples[0].labels == {
        "gpu": "0", "UUID": "GPU-1", "pci_bus_id": "0000:01:00.0", "device": "nvidia0", "modelName": "NVIDIA H200",
        "Hostname": "lab",
    }  # fmt: skip
    assert values["tera_instance_cpu_cores"] == 1.5


def test_hostile_names_stay_in_their_label() -> None:
    hostile = 'a"} 1\nDCGM_FI_DEV_GPU_UTIL{x="\\'
    text = text_of(hostile, CardReading(slot="s", name=hostile, utilisation_percent=1))
    (family,) = [each for each in text_string_to_metric_families(text) if each.name == "DCGM_FI_DEV_GPU_UTIL"]
    assert [each.labels["Hostname"] for each in family.samples] == [hostile]


def test_no_hosts_have_no_lines() -> None:
    assert readings_text([]) == ""

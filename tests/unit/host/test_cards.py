"""Broken cards: none hides another, and unknown values are never made up."""

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pynvml = pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")

from tests.unit.host.fake_nvml import FAULTS, FakeNvml, a_card, fail, in_slices, recovery  # noqa: E402

from teraflock.fleet.model import GpuKind  # noqa: E402
from teraflock.host import inspect as inspecting  # noqa: E402
from teraflock.host.cards import address_of, catalog_id, read_cards  # noqa: E402
from teraflock.host.inspect import inspect, report_of  # noqa: E402
from teraflock.host.model import HostCard, NvLink, Pcie  # noqa: E402

THREE = (a_card(0), a_card(1), a_card(2))
QUESTIONS = ("HandleByIndex", *THREE[0])


def read(
    *cards: dict[str, Any], faults: dict[tuple[int, str], int] | None = None, **more: Any
) -> tuple[HostCard, ...]:
    found, _ = read_cards(FakeNvml(*cards, faults=faults), more.get("on_bus", ()), more.get("xids"))
    return found


def test_a_healthy_card_is_reported_completely() -> None:
    card = read(a_card(1))[0]
    assert (card.pci_address, card.answers, card.gpu, card.known) == (
        "0000:3b:00.0",
        True,
        "A100-SXM4-80",
        True,
    )
    assert card.memory_bytes == 80 << 30
    assert card.compute_capability == "8.0"
    assert card.pcie == Pcie(generation=1, generation_max=4, width=16, width_max=16)
    assert card.nvlink == NvLink(links=12, links_active=12, version=5)
    assert (card.power_watts, card.power_watts_max, card.temperature_celsius) == (61.5, 400, 41)
    assert (card.utilisation_percent, card.ecc, card.mig) == (7, True, False)
    assert card.health.healthy
    assert card.health.problems == ()
    assert (card.health.rows_remapped_correctable, card.health.pages_retired) == (1, None)
    assert card.health.recovery == "none"
    assert card.unread == {}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("code", FAULTS)
def test_a_failed_query_costs_one_answer(question: str, code: int) -> None:
    whole = read(*THREE)
    found = read(*THREE, faults={(1, question): code})
    assert [card for card in found if card.pci_address != "0000:3b:00.0"] == [whole[0], whole[2]]
    if question in ("HandleByIndex", "PciInfo"):
        assert len(found) == 2
        return
    broken = found[1]
    assert broken.answers
    if question == "Temperature":  # the newer function answers first
        assert broken == whole[1]
        return
    absent = code in (pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
    told_otherwise = question == "TemperatureV" and (absent or broken.temperature_celsius == 41)
    assert bool(broken.unread) == (not absent and not told_otherwise)
    lost = code == pynvml.NVML_ERROR_GPU_IS_LOST
    assert broken.health.healthy == (not lost)


@given(
    st.dictionaries(
        st.tuples(st.integers(0, 2), st.sampled_from(QUESTIONS)), st.sampled_from(FAULTS), max_size=30
    )
)
def test_healthy_cards_are_complete_whatever_fails(faults: dict[tuple[int, str], int]) -> None:
    whole = {card.uuid: card for card in read(*THREE)}
    on_bus = tuple(card.pci_address for card in whole.values())
    found = read(*THREE, faults=faults, on_bus=on_bus, xids={})
    assert [card.pci_address for card in found] == list(on_bus), "every card on the bus is listed once"
    broken = {index for index, _ in faults}
    for index, card in enumerate(found):
        if index not in broken:
            assert card == read(*THREE, xids={})[index]
        elif not card.answers:
            assert not card.health.healthy


def test_a_card_lost_during_the_inspection_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = {
        question: pynvml.NVML_ERROR_GPU_IS_LOST
        for question in QUESTIONS
        if question not in ("HandleByIndex", "PciInfo")
    }
    fake = FakeNvml(*THREE, faults={(0, question): code for question, code in lost.items()})
    found = _inspected(monkeypatch, fake)
    assert not found.cards[0].health.healthy
    assert found.cards[0].health.problems == ("The driver lost the card: restart the host",)
    report = report_of(found)
    assert [gpu.slot for gpu in report.gpus] == ["0000:3b:00.0", "0000:3c:00.0"]
    assert all(gpu.healthy for gpu in report.gpus)
    assert fake.open == 0, "the library is closed again"


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ({"RemappedRows": (0, 8, 0, 1)}, "could not be replaced"),
        ({"RemappedRows": (0, 1, 1, 0)}, "waiting to be replaced"),
        ({"RetiredPagesPendingStatus": 1}, "waiting to be retired"),
        ({"FieldValues": recovery(1)}, "recommends: reset"),
        ({"FieldValues": recovery(2)}, "recommends: reboot"),
        ({"FieldValues": recovery(99)}, "recommends: recovery 99"),
    ],
)
def test_a_card_that_needs_repair_is_unhealthy(answers: dict[str, Any], problem: str) -> None:
    card = read({**a_card(0), **answers})[0]
    assert not card.health.healthy
    assert any(problem in each for each in card.health.problems)


def test_logged_faults_are_reported_and_only_a_lost_card_is_unhealthy() -> None:
    mild = read(a_card(0), xids={"0000:3a:00.0": (48, 48, 31)})[0]
    assert mild.health.healthy
    assert mild.health.problems == ("The kernel logged a double-bit memory error (Xid 48)",)
    assert mild.health.xids == (48, 48, 31)
    assert not read(a_card(0), xids={"0000:3a:00.0": (79,)})[0].health.healthy
    assert read(a_card(0))[0].health.xids is None
    assert read(a_card(0), xids={"0000:99:00.0": (79,)})[0].health.xids == ()


def test_a_card_before_ampere_counts_its_pages() -> None:
    old = {**a_card(0, "Tesla V100-SXM2-16GB", 16160), "RetiredPages": lambda cause: [7, 8][: cause + 1]}
    old |= {"RemappedRows": lambda: fail(pynvml.NVML_ERROR_NOT_SUPPORTED), "RetiredPagesPendingStatus": 0}
    old |= {"MigMode": lambda: fail(pynvml.NVML_ERROR_NOT_SUPPORTED)}
    card = read(old)[0]
    assert card.gpu == "V100-SXM2"
    assert (card.health.pages_retired, card.health.pages_pending, card.health.row_remap_failed) == (
        3,
        False,
        None,
    )
    assert card.mig is None
    assert card.unread == {}


def test_a_card_in_mig_mode_is_offered_as_its_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    cut = in_slices(a_card(0), {"1g.10gb": 9728, "3g.40gb": 40192})
    found = _inspected(monkeypatch, FakeNvml(cut, a_card(1)))
    assert found.cards[0].mig
    assert [part.gpu for part in found.cards[0].slices] == ["A100-SXM4-80:1g.10gb", "A100-SXM4-80:3g.40gb"]
    assert found.cards[0].utilisation_percent is None
    report = report_of(found)
    assert [(gpu.slot, gpu.kind, gpu.gpu) for gpu in report.gpus] == [
        ("0000:3a:00.0/MIG-GPU-0-0", GpuKind.MIG, "A100-SXM4-80:1g.10gb"),
        ("0000:3a:00.0/MIG-GPU-0-1", GpuKind.MIG, "A100-SXM4-80:3g.40gb"),
        ("0000:3b:00.0", GpuKind.PHYSICAL, "A100-SXM4-80"),
    ]
    assert report.gpus[0].memory_bytes == 9728 << 20


def test_a_card_in_mig_mode_without_slices_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert report_of(_inspected(monkeypatch, FakeNvml(in_slices(a_card(0), {})))).gpus == ()


def test_a_card_outside_the_catalog_gets_an_id_from_its_name() -> None:
    card = read(a_card(0, "NVIDIA Frobnicator 9000 (Beta)", 1000))[0]
    assert (card.gpu, card.known) == ("nvidia-frobnicator-9000-beta", False)
    assert catalog_id("", None) == ("", False)


def test_a_driver_that_cannot_count_its_cards_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeNvml(a_card(0))
    monkeypatch.setattr(fake, "nvmlDeviceGetCount", lambda: fail(pynvml.NVML_ERROR_UNKNOWN))
    found = _inspected(monkeypatch, fake, on_bus=("0000:3a:00.0",))
    assert "cannot count" in found.note
    assert [card.answers for card in found.cards] == [False]


def test_without_a_driver_cards_on_the_bus_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeNvml()
    monkeypatch.setattr(fake, "nvmlInit", lambda: fail(pynvml.NVML_ERROR_DRIVER_NOT_LOADED))
    found = _inspected(monkeypatch, fake, on_bus=("0000:3a:00.0", "0000:3b:00.0"))
    assert found.note == "NVIDIA's driver does not answer: Driver Not Loaded; 2 of its cards are on the bus"
    assert (found.driver, found.cuda) == ("", "")
    assert [card.health.healthy for card in found.cards] == [False, False]
    assert report_of(found).gpus == ()


def test_without_the_library_the_rest_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    found = inspect()
    assert found.note.startswith("Cannot read NVIDIA cards: install `teraflock[host]`")
    assert found.processors.threads >= 1
    assert report_of(found).vcpus >= 1


@pytest.mark.parametrize(
    ("bus_id", "address"),
    [
        ("00000000:3B:00.0", "0000:3b:00.0"),
        ("0000:01:00.0", "0000:01:00.0"),
        ("00010000:C1:00.0", "10000:c1:00.0"),
    ],
)
def test_pci_addresses_have_the_form_of_the_kernel(bus_id: str, address: str) -> None:
    assert address_of(bus_id) == address


def _inspected(monkeypatch: pytest.MonkeyPatch, fake: FakeNvml, on_bus: tuple[str, ...] = ()) -> Any:
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    monkeypatch.setattr(inspecting, "nvidia_cards", lambda: on_bus)
    monkeypatch.setattr(inspecting, "logged_faults", lambda: None)
    return inspect()

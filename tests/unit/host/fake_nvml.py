"""A fake NVML with configurable cards and faults. Its constants and errors are the real ones.

Only for cases that no available machine has: broken cards, slices, old drivers. docs/host-inspect.md has real output.
"""

from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

pynvml: Any = import_module("pynvml")

FAULTS = (
    pynvml.NVML_ERROR_GPU_IS_LOST,
    pynvml.NVML_ERROR_UNKNOWN,
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_NO_PERMISSION,
    pynvml.NVML_ERROR_TIMEOUT,
)

MIB = 1 << 20


def a_card(number: int, name: str = "NVIDIA A100-SXM4-80GB", memory_mib: int = 81920) -> dict[str, Any]:
    """A card's answer to each query. A callable is called with the remaining arguments."""
    return {
        "PciInfo": SimpleNamespace(busId=f"00000000:{0x3A + number:02X}:00.0"),
        "Name": name,
        "UUID": f"GPU-{number}",
        "MemoryInfo": SimpleNamespace(total=memory_mib * MIB, used=5 * MIB),
        "CudaComputeCapability": (8, 0),
        "MigMode": (0, 0),
        "EccMode": (1, 1),
        "PowerUsage": 61_500,
        "EnforcedPowerLimit": 400_000,
        "UtilizationRates": SimpleNamespace(gpu=7, memory=3),
        "CurrPcieLinkGeneration": 1,
        "MaxPcieLinkGeneration": 4,
        "CurrPcieLinkWidth": 16,
        "MaxPcieLinkWidth": 16,
        "NvLinkState": lambda link: 1 if link < 12 else fail(pynvml.NVML_ERROR_INVALID_ARGUMENT),
        "NvLinkVersion": lambda link: 5,
        "TemperatureV": lambda sensor: 41,
        "Temperature": lambda sensor: 41,
        "RemappedRows": (1, 0, 0, 0),
        "RetiredPages": lambda cause: fail(pynvml.NVML_ERROR_NOT_SUPPORTED),
        "RetiredPagesPendingStatus": lambda: fail(pynvml.NVML_ERROR_NOT_SUPPORTED),
        "TotalEccErrors": lambda kind, counter: 0,
        "FieldValues": lambda fields: [_field(0)],
    }


def in_slices(card: dict[str, Any], profiles: dict[str, int]) -> dict[str, Any]:
    """The same card in MIG mode: slices by profile with their memory in MiB, and an empty index after them."""
    parts = [
        {
            "UUID": f"MIG-{card['UUID']}-{place}",
            "Name": f"{card['Name']} MIG {profile}",
            "MemoryInfo": SimpleNamespace(total=memory * MIB, used=0),
        }
        for place, (profile, memory) in enumerate(profiles.items())
    ]

    def part(index: int) -> Any:
        return parts[index] if index < len(parts) else fail(pynvml.NVML_ERROR_NOT_FOUND)

    busy: Callable[[], Any] = lambda: fail(pynvml.NVML_ERROR_NOT_SUPPORTED)  # noqa: E731
    return {
        **card,
        "MigMode": (1, 1),
        "MaxMigDeviceCount": 7,
        "MigDeviceHandleByIndex": part,
        "UtilizationRates": busy,
    }


def recovery(number: int) -> Callable[[object], list[Any]]:
    return lambda fields: [_field(number)]


def fail(code: int) -> Any:
    raise pynvml.NVMLError(code)


def _field(number: int) -> Any:
    return SimpleNamespace(nvmlReturn=pynvml.NVML_SUCCESS, value=SimpleNamespace(uiVal=number))


class FakeNvml:
    """`faults` maps the number of a card and a query to an error code."""

    def __init__(self, *cards: dict[str, Any], faults: dict[tuple[int, str], int] | None = None) -> None:
        self.cards = cards
        self.faults = faults or {}
        self.open = 0

    def nvmlInit(self) -> None:  # noqa: N802 -- the library's own names
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "580.95.05"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:  # noqa: N802
        return 13000

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:  # noqa: N802
        self._fault(index, "HandleByIndex")
        return self.cards[index]

    def __getattr__(self, name: str) -> Any:
        question = name.removeprefix("nvmlDeviceGet")
        if question == name:
            return getattr(pynvml, name)

        def answer(card: dict[str, Any], *rest: Any) -> Any:
            if card in self.cards:
                self._fault(self.cards.index(card), question)
            value = card[question]
            return value(*rest) if callable(value) else value

        return answer

    def _fault(self, index: int, question: str) -> None:
        if (index, question) in self.faults:
            fail(self.faults[index, question])

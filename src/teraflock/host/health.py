"""Whether a card may be given to someone: what it says of its memory, what its driver advises, what the kernel logged.

Unhealthy is what only a reset, a reboot or a new card mends. A fault in the log alone does not make a card unhealthy,
for it may have been reset since; but one that fell off the bus comes back only when the host starts again.
"""

from collections.abc import Mapping
from typing import Any, Final

from teraflock.host.model import Health
from teraflock.host.nvml import Questions

LOST: Final = "It is on the bus, but NVIDIA's driver does not know it"
OFF_THE_BUS: Final = 79

XIDS: Final[Mapping[int, str]] = {
    48: "a memory error of two bits",
    64: "a row or page that could not be taken out of use",
    74: "an error of NVLink",
    OFF_THE_BUS: "it fell off the bus",
    95: "a memory error that spread",
    119: "its system processor did not answer",
    120: "an error of its system processor",
}
"""NVIDIA's numbers for faults of the card itself. Most others are the fault of a program."""

_RECOVERIES: Final = {
    0: "none",
    1: "reset",
    2: "reboot",
    3: "drain",
    4: "drain and reset",
    6: "bus reset",
    7: "reboot",
}


def health_of(nvml: Any, questions: Questions, handle: Any, xids: tuple[int, ...] | None) -> Health:
    ask = questions.ask
    rows = ask("rows_remapped", lambda: nvml.nvmlDeviceGetRemappedRows(handle))
    pages = ask("pages_retired", lambda: _pages(nvml, handle))
    pages_pending = ask("pages_pending", lambda: bool(nvml.nvmlDeviceGetRetiredPagesPendingStatus(handle)))
    ecc = ask(
        "ecc_uncorrected",
        lambda: int(
            nvml.nvmlDeviceGetTotalEccErrors(
                handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
            )
        ),
    )
    recovery = ask("recovery", lambda: _recovery(nvml, handle))
    grave = [
        *(
            ["Its spare rows are used up: a row of its memory could not be replaced"]
            if rows and rows[3]
            else []
        ),
        *(["A row of its memory waits to be replaced: reset the card"] if rows and rows[2] else []),
        *(["A page of its memory waits to be retired: reset the card"] if pages_pending else []),
        *([f"Its driver asks for: {recovery}"] if recovery not in (None, "none") else []),
        *([_told(OFF_THE_BUS)] if OFF_THE_BUS in (xids or ()) else []),
        *(["It is lost: restart the host"] if questions.lost else []),
    ]
    mild = [_told(xid) for xid in dict.fromkeys(xids or ()) if xid in XIDS and xid != OFF_THE_BUS]
    return Health(
        healthy=not grave,
        problems=(*grave, *mild),
        recovery=recovery,
        ecc_uncorrected=ecc,
        rows_remapped_correctable=rows[0] if rows else None,
        rows_remapped_uncorrectable=rows[1] if rows else None,
        row_remap_pending=bool(rows[2]) if rows else None,
        row_remap_failed=bool(rows[3]) if rows else None,
        pages_retired=pages,
        pages_pending=pages_pending,
        xids=xids,
    )


def _told(xid: int) -> str:
    return f"The kernel logged {XIDS[xid]} (Xid {xid})"


def _pages(nvml: Any, handle: Any) -> int:
    causes = (
        nvml.NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS,
        nvml.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR,
    )
    return sum(len(nvml.nvmlDeviceGetRetiredPages(handle, cause)) for cause in causes)


def _recovery(nvml: Any, handle: Any) -> str | None:
    field = nvml.nvmlDeviceGetFieldValues(handle, [nvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION])[0]
    if field.nvmlReturn != nvml.NVML_SUCCESS:
        return None  # the driver is older than the question
    number = int(field.value.uiVal)
    return _RECOVERIES.get(number, f"recovery {number}")

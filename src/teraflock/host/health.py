"""Decides whether a card is healthy, from its memory errors, the driver's advice and the kernel log.

A card is unhealthy if only a reset, a reboot or a replacement can repair it. A logged fault alone does not make it
unhealthy, because the card may have been reset since. But a card that fell off the bus returns only after a reboot.
"""

from collections.abc import Mapping
from typing import Any, Final

from teraflock.host.model import Health
from teraflock.host.nvml import Queries

LOST: Final = "The card is on the bus, but NVIDIA's driver does not list it"
OFF_THE_BUS: Final = 79

XIDS: Final[Mapping[int, str]] = {
    48: "a double-bit memory error",
    64: "a memory row or page that could not be retired",
    74: "an NVLink error",
    OFF_THE_BUS: "that it fell off the bus",
    95: "an uncontained memory error",
    119: "a timeout of its GSP processor",
    120: "an error of its GSP processor",
}
"""NVIDIA's codes for faults of the card itself. Most other codes are caused by programs."""

_RECOVERIES: Final = {
    0: "none",
    1: "reset",
    2: "reboot",
    3: "drain",
    4: "drain and reset",
    6: "bus reset",
    7: "reboot",
}


def health_of(nvml: Any, queries: Queries, handle: Any, xids: tuple[int, ...] | None) -> Health:
    ask = queries.ask
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
            ["It has no spare memory rows left: a faulty row could not be replaced"]
            if rows and rows[3]
            else []
        ),
        *(["A memory row is waiting to be replaced: reset the card"] if rows and rows[2] else []),
        *(["A memory page is waiting to be retired: reset the card"] if pages_pending else []),
        *([f"The driver recommends: {recovery}"] if recovery not in (None, "none") else []),
        *([_xid_text(OFF_THE_BUS)] if OFF_THE_BUS in (xids or ()) else []),
        *(["The driver lost the card: restart the host"] if queries.lost else []),
    ]
    mild = [_xid_text(xid) for xid in dict.fromkeys(xids or ()) if xid in XIDS and xid != OFF_THE_BUS]
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


def _xid_text(xid: int) -> str:
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
        return None  # the driver is too old for this query
    number = int(field.value.uiVal)
    return _RECOVERIES.get(number, f"recovery {number}")

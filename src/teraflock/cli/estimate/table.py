"""Output of `tera estimate`: a table of GPU models on stdout; the peak, its parts and advice on stderr."""

from typing import TYPE_CHECKING, Final

from teraflock.base.quantities import GIB
from teraflock.cli.output import remark
from teraflock.cli.table import Column, write_rows

if TYPE_CHECKING:
    from teraflock.estimate.cpu import OnCpu
    from teraflock.estimate.model import Estimate, OnGpu

_COLUMNS: Final = [
    Column("GPU"),
    Column("fits"),
    Column("room", right=True, worth=6),
    Column("largest batch", right=True, worth=7),
    Column("step p10–p50–p90", right=True),
    Column("samples/s", right=True, worth=5),
    Column("hours", right=True, worth=8),
    Column("evidence", flexible=True, worth=2),
]


def show(estimate: "Estimate", *, host: str, advise: bool = True) -> None:
    rows = list(map(_cells, estimate.gpus))
    write_rows(_COLUMNS, rows + ([_cpu_cells(estimate.cpu)] if estimate.cpu else []))
    for reason, gpus in _unable(estimate).items():
        remark(f"{', '.join(gpus)}: {reason}")
    memory = estimate.memory
    parts = sorted(memory.breakdown.items(), key=lambda each: -each[1])
    from teraflock.estimate.parallel import (  # imported here: completion loads this module
        COPIES,
        LINKS,
        OFFLOADED,
        SHARDED,
        TENSOR,
    )

    divided = any(each in estimate.assumptions for each in (SHARDED, OFFLOADED))
    peak = "Peak on one GPU, without sharding and offload" if divided else "Peak"
    if LINKS in estimate.assumptions and not divided:
        peak = "Peak on each GPU, without DDP's gradient buckets"
    remark(
        f"\n{peak}: {_gib(memory.live_peak_bytes)} live, {_gib(memory.reserved_peak_bytes)} reserved (no limit set),"
        f" {_gib(memory.device_peak_bytes)} on the device"
    )
    if estimate.gpus:
        each = " on each GPU" if {COPIES, LINKS, TENSOR} & {*estimate.assumptions} else ""
        need = _gib(estimate.gpus[0].need_bytes)
        remark(f"Minimum to fit{each}: {need} (without convolution workspaces)")
    remark(
        "At the peak: "
        + ", ".join(f"{_gib(size)} {name.replace('_', ' ')}" for name, size in parts if size > 1 << 20)
    )
    remark("Assumes that data loading is not the bottleneck. Hours are for consecutive steps")
    for assumed in estimate.assumptions:
        remark(f"{assumed[:1].upper()}{assumed[1:]}")
    if waiting := [row.gpu for row in estimate.gpus if row.bound == "host"]:
        where = waiting[0] if len(waiting) == 1 else f"{len(waiting)} of these {len(estimate.gpus)}"
        own = (
            ", and a step is shorter if you do not share CPU cores (`--cpu own`)" if host == "shared" else ""
        )
        remark(f"On {where} the GPU waits for the host: a larger batch takes little more time{own}")
    if advise and estimate.gpus and not any(row.fits for row in estimate.gpus):
        _suggest(estimate)


def _unable(estimate: "Estimate") -> dict[str, list[str]]:
    """The cards that have the memory and still cannot run the workload, by reason."""
    found: dict[str, list[str]] = {}
    for row in estimate.gpus:
        if not row.fits and row.step_seconds is None and row.memory_bytes >= row.need_bytes:
            found.setdefault(row.evidence, []).append(row.gpu)
    return found


def _suggest(estimate: "Estimate") -> None:
    from teraflock.estimate.advice import advice

    room = max(row.memory_bytes for row in estimate.gpus)
    remark(
        f"\nThe workload fits on none of these cards (at most {_gib(room)} available to PyTorch). Options:"
    )
    for line in advice(estimate, room):
        remark(f"  {line}")


def _cells(row: "OnGpu") -> list[str]:
    spare = row.memory_bytes - row.need_bytes
    return [
        row.gpu,
        ("yes" if row.fits else "no")
        + (f", OOM {row.oom_probability:.0%}" if 0.01 < row.oom_probability < 0.99 else ""),
        f"{spare / GIB:+.1f} GiB",
        "?" if row.largest_batch is None else f"{row.largest_batch:,}",
        _interval(row),
        "" if row.samples_per_second is None else _figure(row.samples_per_second, 4),
        "" if row.hours is None else "–".join(map(_figure, (row.hours.p10, row.hours.p50, row.hours.p90))),
        row.evidence,
    ]


def _cpu_cells(row: "OnCpu") -> list[str]:
    """The same step without a GPU. Whether it fits depends on the RAM of the host."""
    samples = "" if row.samples_per_second is None else _figure(row.samples_per_second, 4)
    hours = "" if row.hours is None else "–".join(map(_figure, (row.hours.p10, row.hours.p50, row.hours.p90)))
    return [f"CPU, {row.cores} cores", "in RAM", "", "", _interval(row), samples, hours, row.evidence]


def _interval(row: "OnGpu | OnCpu") -> str:
    if row.step_seconds is None:
        return ""
    each = row.step_seconds
    unit, scale = ("s", 1.0) if each.p90 >= 1 else ("ms", 1e3)
    return "–".join(_figure(value * scale) for value in (each.p10, each.p50, each.p90)) + f" {unit}"


def _figure(value: float, digits: int = 3) -> str:
    """Rounded to this many significant digits, without an exponent."""
    return f"{value:,.0f}" if value >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def _gib(size: int) -> str:
    return f"{size / GIB:.2f} GiB" if size < 10 * GIB else f"{size / GIB:.1f} GiB"

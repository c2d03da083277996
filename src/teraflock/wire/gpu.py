"""A GPU model as JSON, for `tera gpus --json` and `GET /v1/gpus`."""

import msgspec

from teraflock.catalog.model import Accelerator, Card


class GpuShape(msgspec.Struct, frozen=True, kw_only=True):
    gpu: str
    name: str
    kind: str
    """`gpu`, or another kind such as `tpu` or `fpga`."""
    family: str
    maker: str
    year: int | None = None
    architecture: str = ""
    compute_capability: str = ""
    form: str = ""
    memory_bytes: int | None
    usable_memory_bytes: int | None = None
    memory_type: str = ""
    bandwidth_gbs: float | None = None
    sms: int | None = None
    fp32_tflops: float | None = None
    fp16_tflops: float | None = None
    tf32_tensor_tflops: float | None = None
    fp16_tensor_tflops: float | None = None
    cores: int | None = None
    fp64_tflops: float | None = None
    fp64_tensor_tflops: float | None = None
    int8_tops: float | None = None
    fp8_tensor_tflops: float | None = None
    bf16: bool | None = None
    tdp_watts: float | None = None
    nvlink_gbs: float | None = None
    graphics: bool | None = None
    ray_tracing: bool | None = None
    encoders: int | None = None
    decoders: int | None = None
    encodes: str = ""
    """Video formats, separated by spaces."""
    note: str = ""
    source: str = ""
    usable_source: str = ""


def shape_gpu(gpu: Card | Accelerator) -> GpuShape:
    return shape_card(gpu) if isinstance(gpu, Card) else shape_accelerator(gpu)


def shape_card(card: Card) -> GpuShape:
    same = {name: getattr(card, name) for name in GpuShape.__struct_fields__ if hasattr(card, name)}
    return GpuShape(gpu=card.id, kind="gpu", **same)


def shape_accelerator(other: Accelerator) -> GpuShape:
    return GpuShape(
        gpu=other.id,
        name=other.name,
        kind=other.kind,
        family=other.id,
        maker=other.maker,
        memory_bytes=other.memory_bytes,
        note=other.note,
    )

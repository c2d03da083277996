"""Declares torchvision's own operators where its compiled library does not load.

torchvision's wheels are linked against CUDA, so a CPU build of PyTorch has their models but not their operators. A
trace needs only declarations; torchvision itself adds shapes and gradients. `nms` also runs on the CPU. Python imports
this file at its start if its folder is in `PYTHONPATH`.
"""

import importlib.util
import sys
from typing import Any

ROI = "Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
ROI_BACK = (
    "float spatial_scale, SymInt pooled_height, SymInt pooled_width, {more}SymInt batch_size, SymInt channels,"
    " SymInt height, SymInt width"
)
CONV = (
    "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w,"
    " SymInt pad_h, SymInt pad_w, SymInt dil_h, SymInt dil_w, SymInt groups, SymInt offset_groups, bool use_mask"
)
BACK = ROI_BACK.format(more="")
SAMPLED = ROI_BACK.format(more="int sampling_ratio, ")
SCHEMAS = [
    "_cuda_version() -> int",
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    f"roi_align({ROI}, int sampling_ratio, bool aligned) -> Tensor",
    f"qroi_align({ROI}, int sampling_ratio, bool aligned) -> Tensor",
    f"_roi_align_backward(Tensor grad, Tensor rois, {BACK}, int sampling_ratio, bool aligned) -> Tensor",
    f"roi_pool({ROI}) -> (Tensor, Tensor)",
    f"_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, {BACK}) -> Tensor",
    f"ps_roi_align({ROI}, int sampling_ratio) -> (Tensor, Tensor)",
    f"_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor mapping, {SAMPLED}) -> Tensor",
    f"ps_roi_pool({ROI}) -> (Tensor, Tensor)",
    f"_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor mapping, {BACK}) -> Tensor",
    f"deform_conv2d({CONV}) -> Tensor",
    f"_deform_conv2d_backward(Tensor grad, {CONV}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
]


_kept: list[Any] = []


def declare() -> None:
    import torch

    library = torch.library.Library("torchvision", "FRAGMENT")
    for schema in SCHEMAS:
        library.define(schema)
    library.impl("nms", _nms, "CPU")
    library.impl("_cuda_version", lambda: -1, "CompositeExplicitAutograd")
    load = torch.ops.load_library
    torch.ops.load_library = lambda path: None if "torchvision" in str(path) else load(path)
    _kept.append(library)


def _nms(boxes: Any, scores: Any, threshold: float) -> Any:
    import torch

    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    left = scores.argsort(descending=True).tolist()
    kept = []
    while left:
        best, *left = left
        kept.append(best)
        rest = torch.tensor(left, dtype=torch.long)
        low = torch.maximum(boxes[best, :2], boxes[rest, :2])
        high = torch.minimum(boxes[best, 2:], boxes[rest, 2:])
        both = (high - low).clamp(min=0).prod(1)
        left = rest[both / (area[best] + area[rest] - both) <= threshold].tolist()
    return torch.tensor(kept, dtype=torch.long)


class _BeforeTorchvision:
    """Declares the operators when torchvision is about to be imported and its own library cannot be loaded."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "torchvision":
            sys.meta_path.remove(self)
            found = importlib.util.find_spec("torchvision")
            if found is not None and not _loads(found):
                declare()


def _loads(found: Any) -> bool:
    import ctypes
    from pathlib import Path

    import torch  # noqa: F401 -- its libraries are loaded first, as torchvision does

    for library in Path(found.origin).parent.glob("_C*.so"):
        try:
            ctypes.CDLL(str(library))
        except OSError:
            return False
    return True


sys.meta_path.insert(0, _BeforeTorchvision())

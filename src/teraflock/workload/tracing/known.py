"""Values of GPU tensors that the script itself put there: lengths, labels, masks and positions.

A copy of a small host tensor keeps its values, and so does what is computed from such tensors alone. So a script may
ask how many nodes its batch has, or select by a mask of its own. Whatever depends on weights has no values. Decimal
numbers keep theirs only to compare them: reading one gives a placeholder, as for a loss.
"""

from collections.abc import Callable
from typing import Any, Final

import torch
from torch._subclasses.fake_tensor import FakeTensor

from teraflock.workload.tracing.side import tensors_in

ELEMENTS_MAX: Final = 1 << 22
NAME: Final = "teraflock_values"
CREATED: Final = frozenset(
    (
        "aten::arange",
        "aten::zeros",
        "aten::ones",
        "aten::full",
        "aten::scalar_tensor",
        "aten::eye",
        "aten::randperm",
    )
)
LIKE: Final = frozenset(
    (
        "aten::zeros_like",
        "aten::ones_like",
        "aten::full_like",
        "aten::new_zeros",
        "aten::new_ones",
        "aten::new_full",
    )
)
"""These use no values of their input."""
CHOICES_MAX: Final = 512
"""Of so many at most, as of experts, `topk` is assumed to choose each equally often."""
ASSUMED: Final = "teraflock_assumed"
"""Set on values that follow from this assumption."""
DECIDING: Final = {
    f"aten::{name}{inplace}": name.endswith("or")
    for name in ("bitwise_or", "logical_or", "bitwise_and", "logical_and", "mul")
    for inplace in ("", "_")
}
"""The operand that decides: true for `or`, zero for `and` and for a product."""
OVERWRITES: Final = frozenset({"aten::fill_", "aten::zero_", "aten::copy_"})


class KnownValues:
    """`False` as `is_on` for symbolic traces: their sizes are no numbers."""

    def __init__(self, *, is_on: bool = True) -> None:
        self.is_on = is_on
        self._lost: dict[int, Any] = {}
        """Storages of values that something unknown has overwritten."""
        self.on_assumed: Callable[[], None] = lambda: None
        """Called when a shape follows from assumed values."""

    def of(self, tensor: Any) -> Any:
        """The values of a tensor, or None."""
        if tensor.layout is not torch.strided:
            return None
        if not isinstance(tensor, FakeTensor):
            is_small = tensor.numel() <= ELEMENTS_MAX and tensor.device.type == "cpu"
            return tensor if is_small and self.is_on else None
        found = tensor.__dict__.get(NAME)
        if found is None or found.untyped_storage()._cdata in self._lost:
            return None
        return found

    def readable(self, tensor: Any) -> Any:
        """The values that a script may read: no decimal numbers."""
        if not isinstance(tensor, FakeTensor) or tensor.dtype.is_floating_point or tensor.dtype.is_complex:
            return None
        return self.of(tensor)

    def keep(self, tensor: Any, values: Any) -> None:
        if self.is_on and values.numel() <= ELEMENTS_MAX and values.shape == tensor.shape:
            tensor.__dict__[NAME] = values

    def copied(self, source: Any, copy: Any) -> None:
        """A transfer from the host."""
        values = self.of(source)
        if values is not None and isinstance(copy, FakeTensor):
            self.keep(copy, values.detach().to(copy.dtype, copy=True))

    def shaping(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The result of an operation whose shape depends on values, if all of them are known; otherwise None."""
        if not self.is_on or torch.Tag.dynamic_output_shape not in func.tags:
            return None
        given = tensors_in((args, list(kwargs.values())))
        if func._schema.name == "aten::nonzero" and given[0].dtype.is_floating_point:
            return None
        values = [self.of(each) for each in given]
        if any(each is None for each in values):
            return None
        if any(hasattr(each, ASSUMED) for each in values):
            self.on_assumed()
        return self._run(func, args, kwargs)

    def follow(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        """Compute with values what `out` was computed from without."""
        if not self.is_on:
            return
        given = tensors_in((args, list(kwargs.values())))
        if not given:
            is_small = isinstance(out, FakeTensor) and out.numel() <= ELEMENTS_MAX
            if is_small and func._schema.name in CREATED:
                self.keep(out, func(*args, **{**kwargs, "device": "cpu"}))
            return
        made = tensors_in(out)
        if func._schema.name in LIKE:
            if made[0].numel() <= ELEMENTS_MAX and not made[0].dtype.is_floating_point:
                like = torch.empty(given[0].shape, dtype=given[0].dtype)
                self.keep(made[0], func(like, *args[1:], **{**kwargs, "device": "cpu"}))
            return
        if func._schema.name in OVERWRITES and isinstance(given[0], FakeTensor):
            self._begin(given[0])
        is_known = all(self.of(each) is not None for each in given) and all(
            each.numel() <= ELEMENTS_MAX for each in made
        )
        values = self._run(func, args, kwargs) if is_known and made else None
        if values is None:
            decided = self._decided(func, given, made)
            self._forget(func, given)
            self._spread(func, args, made)
            if decided is not None:
                self.keep(made[0], decided)
            return
        is_assumed = any(hasattr(self.of(each), ASSUMED) for each in given)
        for each, value in zip(made, tensors_in(values), strict=False):
            if isinstance(each, FakeTensor):
                self.keep(each, value)
                if is_assumed:
                    setattr(value, ASSUMED, True)

    def _decided(self, func: Any, given: list[Any], made: list[Any]) -> Any:
        """The result that one operand decides whatever the others are, such as whether a text has its full length."""
        decides = DECIDING.get(func._schema.name)
        if decides is None or made[0].dtype.is_floating_point or made[0].numel() > ELEMENTS_MAX:
            return None
        known = [values for each in given if (values := self.of(each)) is not None and values.numel()]
        if not any(bool((values.bool() == decides).all()) for values in known):
            return None
        return torch.full(made[0].shape, decides, dtype=made[0].dtype)

    def _spread(self, func: Any, args: Any, made: list[Any]) -> None:
        """The experts that tokens choose: no two equal in a row, and each equally often."""
        if func._schema.name != "aten::topk" or args[2:3] not in ((), (-1,), (args[0].dim() - 1,)):
            return
        choices, places = args[0].shape[-1], made[1]
        if choices <= CHOICES_MAX and places.numel() <= ELEMENTS_MAX:
            values = torch.arange(places.numel()).remainder(choices).view(places.shape)
            setattr(values, ASSUMED, True)
            self.keep(places, values)

    def _begin(self, tensor: Any) -> None:
        """All elements are about to be written: `torch.empty(…).fill_(…)`."""
        is_whole = tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes()
        if (
            self.of(tensor) is None
            and is_whole
            and tensor.numel() <= ELEMENTS_MAX
            and NAME not in tensor.__dict__
        ):
            self.keep(tensor, torch.empty(tensor.shape, dtype=tensor.dtype))

    def _run(self, func: Any, args: Any, kwargs: Any) -> Any:
        if torch.Tag.nondeterministic_seeded in func.tags:
            return None
        try:
            return func(*_valued(args, self), **_valued(kwargs, self))
        except (RuntimeError, TypeError, IndexError, NotImplementedError):
            return None

    def _forget(self, func: Any, given: list[Any]) -> None:
        if (
            func._schema.is_mutable
            and (values := self.of(given[0])) is not None
            and isinstance(given[0], FakeTensor)
        ):
            storage = values.untyped_storage()
            self._lost[storage._cdata] = storage


def _valued(value: Any, known: KnownValues) -> Any:
    if isinstance(value, torch.Tensor):
        return known.of(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_valued(each, known) for each in value)
    if isinstance(value, dict):
        return {key: "cpu" if key == "device" else _valued(each, known) for key, each in value.items()}
    return value

"""The functions of ``numpy`` that the rules use, on torch tensors of one device, without a transfer to the host.

Only what differs from torch is written out; every other name is torch's own. torch has no boolean-mask indexing,
``nonzero`` or ``item`` without a transfer, and an index past the end is an error there (on CUDA it ends the process).
So `rows` and `put` limit their indices, and loops have a fixed length.
"""
# ruff: noqa: D102 - methods without a docstring do what NumPy's function of that name does

from __future__ import annotations

import functools
from numbers import Number
from typing import Any

import numpy as np

Tensor = Any


class TorchArrays:
    """``xp`` for tensors on ``device``: what it creates is created there."""

    def __init__(self, torch: Any, device: Any) -> None:
        self.torch, self.device = torch, device
        self.linalg = self
        self._constant = functools.lru_cache(maxsize=256)(self._uploaded)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.torch, name)

    # -- made on the device ----------------------------------------------------------------------------------------

    def asarray(self, value: Any, dtype: Any = None) -> Tensor:
        """Constants are uploaded once: a copy from the host's memory waits for the device."""
        if isinstance(value, self.torch.Tensor):
            return value.to(dtype=dtype)
        if isinstance(value, Number) and not isinstance(value, np.generic):
            return self.torch.full((), value, dtype=dtype, device=self.device)
        array = np.asarray(value)
        return self._constant(array.tobytes(), array.shape, array.dtype.str, dtype)

    def _uploaded(self, content: bytes, shape: tuple[int, ...], kind: str, dtype: Any) -> Tensor:
        array = np.frombuffer(content, np.dtype(kind)).reshape(shape).copy()
        return self.torch.as_tensor(array, dtype=dtype, device=self.device)

    def arange(self, *bounds: int, dtype: Any = None) -> Tensor:
        return self.torch.arange(*bounds, dtype=dtype, device=self.device)

    def zeros(self, shape: Any, dtype: Any = None) -> Tensor:
        return self.torch.zeros(shape, dtype=self._dtype(dtype), device=self.device)

    def ones_like(self, like: Tensor, dtype: Any = None) -> Tensor:
        return self.torch.ones_like(like, dtype=self._dtype(dtype))

    def _dtype(self, dtype: Any) -> Any:
        return self.torch.bool if dtype is bool else dtype

    # -- one of the arguments may be a number ----------------------------------------------------------------------

    def where(self, condition: Tensor, one: Any, other: Any) -> Tensor:
        one, other = (int(v) if isinstance(v, int) else v for v in (one, other))  # torch knows no IntEnum
        return self.torch.where(condition, one, other)

    def maximum(self, one: Any, other: Any) -> Tensor:
        return self._bounded(self.torch.maximum, "min", one, other)

    def minimum(self, one: Any, other: Any) -> Tensor:
        return self._bounded(self.torch.minimum, "max", one, other)

    def _bounded(self, of_tensors: Any, bound: str, one: Any, other: Any) -> Tensor:
        if isinstance(one, Number):
            one, other = other, one
        if isinstance(other, Number):
            return one.clamp(**{bound: other})
        return of_tensors(*self.torch.broadcast_tensors(*self._alike(one, other)))

    def _alike(self, one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
        dtype = self.torch.result_type(one, other)
        return one.to(dtype), other.to(dtype)

    def clip(self, value: Any, low: Any, high: Any) -> Tensor:
        return self.minimum(self.maximum(value, low), high)

    def divmod(self, one: Tensor, other: Any) -> tuple[Tensor, Tensor]:
        return one // other, one % other

    # -- names and axes --------------------------------------------------------------------------------------------

    def concatenate(self, arrays: Any, axis: int = 0) -> Tensor:
        return self.torch.cat(list(arrays), dim=axis)

    def stack(self, arrays: Any, axis: int = 0) -> Tensor:
        return self.torch.stack(list(arrays), dim=axis)

    def flip(self, array: Tensor, axis: int) -> Tensor:
        return self.torch.flip(array, (axis,))

    def repeat(self, array: Tensor, times: int) -> Tensor:
        return self.torch.repeat_interleave(array, times)

    def argmax(self, array: Tensor, axis: int) -> Tensor:
        return self.torch.argmax(array.to(self.torch.int8) if array.dtype == self.torch.bool else array, dim=axis)

    def take_along_axis(self, array: Tensor, index: Tensor, axis: int) -> Tensor:
        return self.torch.take_along_dim(array, index.long(), dim=axis)

    def pad(self, array: Tensor, padding: Any) -> Tensor:
        """Zeros after the last axis; the other axes stay."""
        (_, more) = padding[-1]
        return self.torch.nn.functional.pad(array, (0, more))

    def solve(self, matrix: Tensor, right: Tensor) -> Tensor:
        """``linalg.solve`` without the check for singular matrices, which waits for the device."""
        return self.torch.linalg.solve_ex(matrix, right).result

    # -- what `scout_rl.rules.arrays` asks for -----------------------------------------------------------------------

    def rows(self, array: Tensor, index: Tensor) -> Tensor:
        """``array[index]``; an index past the end gives the last row."""
        return array[index.long().clamp(max=len(array) - 1)]

    def put(self, array: Tensor, index: Tensor, values: Any) -> Tensor:
        """A copy with ``values`` at ``index``; what goes past the end lands on a spare row, which is dropped."""
        spare = self.torch.cat([array, array[:1]])
        values = values.to(array.dtype) if isinstance(values, self.torch.Tensor) else self.asarray(values, array.dtype)
        if index.ndim == 0:  # a tensor without axes as an index is read on the host
            index, values = index[None], values[None]
        spare[index.long().clamp(max=len(array))] = values
        return spare[:-1]

    def segment_sum(self, values: Tensor, segment: Tensor, length: int) -> Tensor:
        """The sum of ``values`` per id; ids are below ``length``."""
        return self.torch.zeros(length, dtype=values.dtype, device=self.device).index_add_(0, segment.long(), values)

    def select(self, condition: Tensor, one: Any, other: Any) -> Any:
        """Every tensor of a named tuple from ``one`` where ``condition`` (a scalar) holds, else from ``other``."""
        if one is None or one is other:
            return other
        if isinstance(one, tuple):
            return type(one)(*(self.select(condition, a, b) for a, b in zip(one, other, strict=True)))
        return self.torch.where(condition, one, other)


@functools.cache
def on(device: Any) -> TorchArrays:
    """The namespace of a device."""
    import torch

    return TorchArrays(torch, device)

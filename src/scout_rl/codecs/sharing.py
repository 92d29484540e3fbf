"""Arrays that share memory: which of them do, and how each is a view of one that holds all of it.

A captured view says where in its owner's memory it lies. Restored, it is a view of the restored owner, so what is
written through one is seen through the other, as in the original.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from scout_rl.files.archive import Array


class Group(NamedTuple):
    """Arrays that lie in one piece of memory."""

    members: tuple[int, ...]
    owner: int | None
    """The member that is all of the memory; None where none is."""
    start: int
    """The address at which the memory begins."""
    size: int
    """Its length in bytes."""


def foreign_owner(array: Array) -> Any | None:
    """Who else owns an array's memory (a simulator, a torch tensor, a shared memory); None where only arrays do."""
    base: Any = array.base
    while base is not None:
        if isinstance(base, bytes | bytearray):
            return None
        if isinstance(base, memoryview):
            if base.readonly:
                return None  # nobody writes through it: a copy is as good
            base = base.obj
        elif isinstance(base, np.ndarray) or type(base).__module__.startswith("numpy.lib"):  # as_strided's holder
            base = base.base
        else:
            return base
    return None


def memory_order(array: Array) -> list[int] | None:
    """The axes from the slowest to the fastest, where an array fills its memory without gaps; else None."""
    if array.flags.c_contiguous:
        return list(range(array.ndim))
    long = [axis for axis in range(array.ndim) if array.shape[axis] > 1]  # the strides of others mean nothing
    axes = [axis for axis in range(array.ndim) if axis not in long] + sorted(long, key=lambda a: -array.strides[a])
    return axes if array.transpose(axes).flags.c_contiguous else None


def laid_out(array: Array, axes: Sequence[int]) -> Array:
    """A copy with its axes in this order in memory, the slowest first."""
    back = sorted(range(len(axes)), key=axes.__getitem__)
    return np.array(array.transpose(axes), order="C").transpose(back)


def view_of(owner: Array, offset: int, shape: Sequence[int], strides: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """The array that lies so in a gapless owner's memory; a ``ValueError`` where it would reach beyond it."""
    memory = owner.transpose(memory_order(owner)).reshape(-1).view(np.uint8)
    return np.ndarray(tuple(shape), dtype, memory, offset, tuple(strides))


def groups(arrays: Sequence[Array]) -> list[Group]:
    """The arrays that share memory with another one, or with themselves, by piece of memory."""
    ranges = sorted((*_bounds(array), number) for number, array in enumerate(arrays) if array.nbytes)
    found: list[list[tuple[int, int, int]]] = []
    end = -1
    for low, high, number in ranges:
        if not found or low >= end:
            found.append([])
        found[-1].append((low, high, number))
        end = max(end, high)
    return [_group(arrays, members) for members in found if len(members) > 1 or _overlaps_itself(arrays[members[0][2]])]


def place_in(group: Group, array: Array) -> tuple[int, list[int], list[int]]:
    """Offset into the group's memory in bytes, shape and strides."""
    return _address(array) - group.start, list(array.shape), list(array.strides)


def join(group: Group, arrays: Sequence[Array]) -> Array:
    """The group's memory as an array of its own; bytes that no member shows are zero."""
    members = [arrays[number] for number in group.members]
    dtype = members[0].dtype
    steps = [n for array in members for n in (place_in(group, array)[0], *array.strides)]
    if any(array.dtype != dtype for array in members) or any(n % dtype.itemsize for n in (*steps, group.size)):
        dtype = np.dtype(np.uint8)
    memory: Array = np.zeros(group.size // dtype.itemsize, dtype)
    for array in members:
        view_of(memory, *place_in(group, array), array.dtype)[...] = array
    return memory


def checksum(array: Array) -> int:
    """A number by which a view's stored content is known to be what was captured, not edited since."""
    return zlib.crc32(array.tobytes())


def plain_name(dtype: np.dtype[Any]) -> str | None:
    """A name that gives the type back; None where it takes more than a name (fields, sub-arrays)."""
    return dtype.str if dtype.names is None and dtype.subdtype is None and np.dtype(dtype.str) == dtype else None


def _group(arrays: Sequence[Array], ranges: Sequence[tuple[int, int, int]]) -> Group:
    start, end = ranges[0][0], max(high for _, high, _ in ranges)
    members = tuple(sorted(number for _, _, number in ranges))
    whole = [number for low, high, number in ranges if (low, high) == (start, end)]
    owners = sorted(number for number in whole if memory_order(arrays[number]) is not None)
    return Group(members, owners[0] if owners else None, start, end - start)


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _bounds(array: Array) -> tuple[int, int]:
    """The first byte of an array that is not empty, and the one after its last."""
    low = high = _address(array)
    for length, stride in zip(array.shape, array.strides, strict=True):
        if stride < 0:
            low += (length - 1) * stride
        else:
            high += (length - 1) * stride
    return low, high + array.itemsize


def _overlaps_itself(array: Array) -> bool:
    """Whether two entries of a writable array may be one place in memory; no slice or transpose is so."""
    if array.base is None or not array.flags.writeable:
        return False
    reach = array.itemsize
    for stride, length in sorted((abs(s), n) for n, s in zip(array.shape, array.strides, strict=True) if n > 1):
        if stride < reach:
            return True
        reach += stride * (length - 1)
    return False

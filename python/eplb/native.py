"""The C library: the one place that loads it, turns its statuses into exceptions, and ties C memory to Python objects."""
from __future__ import annotations

from typing import Any

import numpy as np

from eplb import errors
from eplb._eplb import ffi, lib

_CLASS_OF_STATUS = {
    lib.EPLB_ERROR_INVALID: errors.InvalidError,
    lib.EPLB_ERROR_MEMORY: errors.OutOfMemoryError,
    lib.EPLB_ERROR_OVERFLOW: errors.LoadOverflowError,
    lib.EPLB_ERROR_INFEASIBLE: errors.InfeasibleError,
    lib.EPLB_ERROR_UNSUPPORTED: errors.UnsupportedError,
    lib.EPLB_ERROR_CANCELLED: errors.CancelledError,
    lib.EPLB_ERROR_SYSTEM: errors.SystemRefusedError,
    lib.EPLB_ERROR_INTERNAL: errors.InternalError,
}

_PLACES = ("layer", "expert", "rank", "slot", "value")


def new_error() -> Any:
    """An eplb_error for the next call."""
    return ffi.new("eplb_error *")


def raise_for(status: int, error: Any) -> None:
    """Raises the exception of a status other than OK, with the text and place that the library left in `error`."""
    if status == lib.EPLB_OK:
        return
    text = ffi.string(error.text).decode("utf-8", "replace")
    place = {name: getattr(error, name) for name in _PLACES if getattr(error, name) != -1}
    raise _CLASS_OF_STATUS.get(status, errors.EplbError)(text, **place)


def create(function: Any, destroy: Any, *arguments: Any) -> Any:
    """Calls an eplb_*_create(out, *arguments, allocator, error) and returns a handle that frees itself."""
    type_name = ffi.typeof(function).args[0].item.item.cname
    out = ffi.new(f"{type_name} **")
    error = new_error()
    raise_for(function(out, *arguments, ffi.NULL, error), error)
    return ffi.gc(out[0], destroy)


class _View:
    """Offers C memory to NumPy and keeps its owner alive as long as the array lives."""

    def __init__(self, owner: Any, address: int, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "typestr": dtype.str,
            "data": (address, True),
        }


def view(owner: Any, pointer: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """A read-only array over memory of `owner`, without a copy."""
    return np.asarray(_View(owner, int(ffi.cast("uintptr_t", pointer)), shape, np.dtype(dtype)))


def pointer(array: np.ndarray, c_type: str) -> Any:
    """Pointer to an array's data; the caller keeps the array alive during the call."""
    return ffi.cast(f"{c_type} *", array.ctypes.data)

"""The C library: the one place that loads it, turns its statuses into exceptions, and ties C memory to Python objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from eplb import errors
from eplb._eplb import ffi, lib

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Handle", "create", "ffi", "keep_exception", "lib", "new_error", "pointer", "pointer_or_null", "raise_for", "text", "view"]

_CLASS_OF_STATUS: dict[int, type[errors.EplbError]] = {
    lib.EPLB_ERROR_INVALID: errors.InvalidError,
    lib.EPLB_ERROR_MEMORY: errors.OutOfMemoryError,
    lib.EPLB_ERROR_OVERFLOW: errors.LoadOverflowError,
    lib.EPLB_ERROR_INFEASIBLE: errors.InfeasibleError,
    lib.EPLB_ERROR_UNSUPPORTED: errors.UnsupportedError,
    lib.EPLB_ERROR_CANCELLED: errors.CancelledError,
    lib.EPLB_ERROR_SYSTEM: errors.SystemRefusedError,
    lib.EPLB_ERROR_INTERNAL: errors.InternalError,
    lib.EPLB_ERROR_BUSY: errors.BusyError,
}

_PLACES = ("layer", "expert", "rank", "slot", "value")


def text(chars: Any) -> str:
    """A C string as str."""
    return str(ffi.string(chars), "utf-8", "replace")


def new_error() -> Any:
    """An eplb_error for the next call."""
    return ffi.new("eplb_error *")


def raise_for(status: int, error: Any) -> None:
    """Raises the exception of a status other than OK, with the text and place that the library left in `error`."""
    if status == lib.EPLB_OK:
        return
    place = {name: getattr(error, name) for name in _PLACES if getattr(error, name) != -1}
    raise _CLASS_OF_STATUS.get(status, errors.EplbError)(text(error.text), **place)


def keep_exception(kind: Any, exception: BaseException, trace: Any) -> None:
    """An `onerror` of cffi: stores what left a callback in the object behind its `context`.

    Also what no ``try`` inside the callback can catch: a signal's KeyboardInterrupt is raised on its first instruction.
    """
    ffi.from_handle(trace.tb_frame.f_locals["context"]).exception = exception


def create(function: Any, destroy: Any, *arguments: Any) -> Any:
    """Calls an eplb_*_create(out, *arguments, allocator, error) and returns a handle that frees itself."""
    type_name = ffi.typeof(function).args[0].item.item.cname
    out = ffi.new(f"{type_name} **")
    error = new_error()
    raise_for(function(out, *arguments, ffi.NULL, error), error)
    return ffi.gc(out[0], destroy)


class Handle:
    """Base of what changes in use or is handed back: a copy would share the memory behind it and release it twice."""

    def __copy__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled: make another")

    def __deepcopy__(self, memo: Any) -> NoReturn:
        self.__copy__()

    def __reduce__(self) -> NoReturn:
        self.__copy__()


class _View:
    """Offers C memory to NumPy and keeps its owner alive as long as the array lives."""

    def __init__(self, owner: Any, address: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "typestr": dtype.str,
            "data": (address, True),
        }


def view(owner: Any, chars: Any, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """A read-only array over C memory of `owner`, without a copy."""
    return np.asarray(_View(owner, int(ffi.cast("uintptr_t", chars)), shape, np.dtype(dtype)))


def pointer(array: NDArray[Any], c_type: str) -> Any:
    """An array's memory as a C array; refuses what is not C-contiguous."""
    return ffi.from_buffer(f"{c_type}[]", array)


def pointer_or_null(array: NDArray[Any] | None, c_type: str) -> Any:
    """The same, NULL for None."""
    return ffi.NULL if array is None else pointer(array, c_type)

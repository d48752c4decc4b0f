"""Arrays in and out: NumPy as it is, anything with DLPack or the buffer protocol without a copy, torch back as torch.

Nothing here imports torch: a tensor is recognised because its caller has imported it already.
"""

from __future__ import annotations

import operator
import sys
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from eplb.errors import InvalidError, LoadOverflowError
from eplb.native import lib

if TYPE_CHECKING:
    from numpy.typing import NDArray

_INT32 = np.iinfo(np.int32)


def is_tensor(value: Any) -> bool:
    """True for a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _of_tensor(tensor: Any) -> Any:
    """The memory of a tensor as a NumPy array; copied only from a device or where NumPy lacks the dtype."""
    tensor = tensor.detach()
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
    if str(tensor.dtype) == "torch.bfloat16":
        tensor = tensor.float()
    return tensor.numpy()


def _of_producer(value: Any) -> Any:
    """What offers DLPack, shared; what refuses to share its memory is asked for a copy."""
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError):
        return np.asarray(value)


def _is_masked(value: Any) -> bool:
    masked = sys.modules.get("numpy.ma")
    return masked is not None and isinstance(value, masked.MaskedArray) and masked.is_masked(value)


def as_numpy(value: Any, name: str) -> NDArray[Any]:
    """`value` as a plain NumPy array of real numbers, sharing memory where possible."""
    if type(value) is np.ndarray:
        array = value
    elif is_tensor(value):
        array = _of_tensor(value)
    elif _is_masked(value):
        raise InvalidError(f"{name} has masked values: fill them first")
    elif hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray):
        array = _of_producer(value)
    else:
        array = np.asarray(value)
    if array.dtype.kind not in "iufb":
        raise TypeError(f"{name} has dtype {array.dtype}: expected integers or real numbers")
    return array


def as_counts(value: Any, name: str) -> NDArray[Any]:
    """Token counts as int32, int64, float32 or float64 in native order, aligned; copied only where that asks for it."""
    array = as_numpy(value, name)
    if array.dtype == np.uint64:
        if array.size and int(array.max()) > np.iinfo(np.int64).max:  # int(): NumPy 1 compares as float
            raise LoadOverflowError(f"{name} holds {array.max()}, which exceeds int64")
        return array.astype(np.int64)
    wanted: type
    if array.dtype.kind in "iub":
        wanted = np.int64 if array.dtype.itemsize == 8 or array.dtype == np.uint32 else np.int32
    else:
        wanted = np.float32 if array.dtype.itemsize <= 4 else np.float64
    array = array.astype(wanted, copy=False)
    if not array.flags.aligned or not any(array.strides):
        array = np.array(array, order="C")  # all strides zero, as a broadcast has, would mean "packed"
    return array


def as_integers(value: Any, name: str, dtype: Any) -> NDArray[Any]:
    """Integers as C-contiguous int32 or int64; values that do not fit are an error, not a wrap."""
    array = as_numpy(value, name)
    wanted = np.dtype(dtype)
    if array.dtype.kind == "f" and array.size:
        raise TypeError(f"{name} has dtype {array.dtype}: expected integers")
    if array.size and not np.can_cast(array.dtype, wanted):
        limits = np.iinfo(wanted)
        low, high = int(array.min()), int(array.max())
        if low < limits.min or high > limits.max:
            raise InvalidError(f"{name} holds values from {low} to {high}: expected {8 * wanted.itemsize}-bit integers")
    return np.require(array, dtype=wanted, requirements=["C", "A"])


def as_int32(value: Any, name: str) -> NDArray[np.int32]:
    """Ids as C-contiguous int32."""
    return as_integers(value, name, np.int32)


def as_int64(value: Any, name: str) -> NDArray[np.int64]:
    """Counts as C-contiguous int64; floats must be whole."""
    array = as_numpy(value, name)
    if array.dtype.kind == "f" and array.size:
        if np.isfinite(array).all() and np.abs(array).max() >= 2.0**63:
            raise LoadOverflowError(f"{name} holds {np.abs(array).max()}, which exceeds int64")
        if not np.array_equal(array, np.floor(array)) or not np.isfinite(array).all():
            raise InvalidError(f"{name} has dtype {array.dtype} and is not whole: expected token counts")
        array = array.astype(np.int64)
    return as_integers(array, name, np.int64)


def as_floats(value: Any, name: str, dtype: Any) -> NDArray[Any]:
    """Real numbers as C-contiguous float32 or float64; what is too large becomes infinite and is refused later."""
    array = as_numpy(value, name)
    if array.dtype == dtype and array.flags.c_contiguous and array.flags.aligned:
        return array
    with np.errstate(over="ignore"):
        return np.require(array, dtype=dtype, requirements=["C", "A"])


def of_shape(array: NDArray[Any], name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """`array` itself, if it has that shape."""
    if array.shape != shape:
        raise InvalidError(f"{name} has shape {array.shape}: expected {shape}")
    return array


def size(value: SupportsIndex, name: str, most: int = int(_INT32.max)) -> int:
    """A size or count, 0 to `most`, as the library's int32; whether 0 makes sense is the library's to say."""
    number = operator.index(value)
    if not 0 <= number <= most:
        raise InvalidError(f"{name} is {number}: expected 0 to {most}", value=number if abs(number) < 1 << 63 else None)
    return number


def slots(value: SupportsIndex, name: str) -> int:
    """A number of slots, not above what the library takes: checked before memory is asked for."""
    return size(value, name, lib.EPLB_MAX_SLOTS)


def layer(value: SupportsIndex, count: int) -> int:
    """The number of one of `count` layers."""
    number = size(value, "layer")
    if number >= count:
        raise InvalidError(f"layer {number}: expected 0 to {count - 1}", layer=number)
    return number


def rank(value: SupportsIndex, count: int) -> int:
    """The number of one of `count` ranks."""
    number = size(value, "rank")
    if number >= count:
        raise InvalidError(f"rank {number}: expected 0 to {count - 1}", rank=number)
    return number


def of_slots(dtype: Any) -> tuple[np.dtype[Any], str]:
    """The type of a table of slots, for NumPy and for C: int32 or int64."""
    wanted = np.dtype(dtype)
    if wanted not in (np.dtype(np.int32), np.dtype(np.int64)):
        raise TypeError(f"dtype {wanted}: expected int32 or int64")
    return wanted, f"{wanted.name}_t"


def like(model: Any, array: NDArray[Any]) -> Any:
    """`array` as the kind and on the device of `model`: torch for torch, else NumPy."""
    if not is_tensor(model):
        return array
    tensor = sys.modules["torch"].from_numpy(array)
    return tensor if model.device.type == "cpu" else tensor.to(model.device)

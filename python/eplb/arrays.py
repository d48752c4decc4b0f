"""Arrays in and out: NumPy as it is, anything with DLPack or the buffer protocol without a copy, torch back as torch.

Nothing here imports torch: a tensor is recognised because its caller has imported it already.
"""
from __future__ import annotations

import sys
from typing import Any

import numpy as np

from eplb.errors import InvalidError, LoadOverflowError


def is_tensor(value: Any) -> bool:
    """True for a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def as_numpy(value: Any, name: str) -> np.ndarray:
    """`value` as a NumPy array of numbers, sharing memory where possible."""
    if is_tensor(value):
        value = value.detach()
        if value.device.type != "cpu":
            value = value.cpu()
        if str(value.dtype) == "torch.bfloat16":
            value = value.float()
        array = value.numpy()
    elif isinstance(value, np.ndarray):
        array = np.asarray(value)
    elif hasattr(value, "__dlpack__"):
        array = np.from_dlpack(value)
    else:
        array = np.asarray(value)
    if array.dtype.kind not in "iufb":
        raise TypeError(f"{name} has dtype {array.dtype}: expected integers or real numbers")
    return array


def as_counts(value: Any, name: str) -> np.ndarray:
    """Token counts as int32, int64, float32 or float64 in native byte order; copied only where the dtype asks for it."""
    array = as_numpy(value, name)
    if array.dtype == np.uint64:
        if array.size and array.max() > np.iinfo(np.int64).max:
            raise LoadOverflowError(f"{name} holds {array.max()}, which exceeds int64")
        return array.astype(np.int64)
    if array.dtype.kind in "iub":
        wanted = np.int64 if array.dtype.itemsize == 8 or array.dtype == np.uint32 else np.int32
    else:
        wanted = np.float32 if array.dtype.itemsize <= 4 else np.float64
    return array.astype(wanted, copy=False)


def as_int32(value: Any, name: str) -> np.ndarray:
    """Ids as C-contiguous int32; values that do not fit are an error, not a wrap."""
    array = as_numpy(value, name)
    if array.dtype.kind == "f":
        raise TypeError(f"{name} has dtype {array.dtype}: expected integers")
    if array.dtype != np.int32 and array.size:
        low, high = int(array.min()), int(array.max())
        if low < np.iinfo(np.int32).min or high > np.iinfo(np.int32).max:
            raise InvalidError(f"{name} holds values from {low} to {high}: expected 32-bit integers")
    return np.ascontiguousarray(array, dtype=np.int32)


def like(model: Any, array: np.ndarray) -> Any:
    """`array` as the kind and on the device of `model`: torch for torch, else NumPy."""
    if not is_tensor(model):
        return array
    tensor = sys.modules["torch"].from_numpy(array)
    return tensor if model.device.type == "cpu" else tensor.to(model.device)

"""Load: tokens per logical expert, layer and window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from eplb import arrays, display
from eplb.errors import InvalidError
from eplb.native import create, ffi, lib, pointer

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ELEMENTS = {
    np.dtype(np.int32): lib.EPLB_ELEMENT_INT32,
    np.dtype(np.int64): lib.EPLB_ELEMENT_INT64,
    np.dtype(np.float32): lib.EPLB_ELEMENT_FLOAT32,
    np.dtype(np.float64): lib.EPLB_ELEMENT_FLOAT64,
}


class Load:
    """Tokens per logical expert, layer and window. Immutable; threads may share it.

    Parameters
    ----------
    counts : [E], [L, E] or [T, L, E]
        int32 and int64 are not copied, whatever their strides: the array must then not change while the load lives. Planning
        checks the counts again before it starts; writing to them while it runs is undefined. Floats must be finite and not
        negative; whole ones are taken as integers, others are scaled by a power of two (:attr:`scale_log2`).

    Source: ``eplb_load_create``.
    """

    def __init__(self, counts: Any) -> None:
        array = arrays.as_counts(counts, "counts")
        if not 1 <= array.ndim <= 3:
            raise InvalidError(f"counts has shape {array.shape}: expected [E], [L, E] or [T, L, E]")
        array = array[(None,) * (3 - array.ndim)]
        params = ffi.new("eplb_load_params *")
        lib.eplb_load_params_init(params, ffi.sizeof("eplb_load_params"))
        params.num_windows, params.num_layers, params.num_experts = (arrays.size(n, "counts") for n in array.shape)
        params.element = _ELEMENTS[array.dtype]
        params.counts = ffi.cast("void *", array.__array_interface__["data"][0])
        params.stride_bytes = list(array.strides)
        params.borrow = array.dtype.kind == "i"
        self._counts = array
        self._handle = create(lib.eplb_load_create, lib.eplb_load_destroy, params)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(T, L, E)."""
        return self.num_windows, self.num_layers, self.num_experts

    @property
    def num_windows(self) -> int:
        """T."""
        return lib.eplb_load_num_windows(self._handle)

    @property
    def num_layers(self) -> int:
        """L."""
        return lib.eplb_load_num_layers(self._handle)

    @property
    def num_experts(self) -> int:
        """E."""
        return lib.eplb_load_num_experts(self._handle)

    @property
    def scale_log2(self) -> int:
        """Power of two that floating-point counts were multiplied by; 0 for integers."""
        return lib.eplb_load_scale_log2(self._handle)

    def sum(self) -> NDArray[np.int64]:
        """[L, E] int64: counts summed over windows."""
        total = np.empty((self.num_layers, self.num_experts), dtype=np.int64)
        for layer in range(self.num_layers):
            lib.eplb_load_sum(self._handle, layer, pointer(total[layer], "int64_t"))
        return total

    def windows(self) -> NDArray[np.int64]:
        """[T, L, E] int64: the counts as the library sees them."""
        counts = np.empty((self.num_layers, self.num_windows, self.num_experts), dtype=np.int64)
        for layer in range(self.num_layers):
            lib.eplb_load_windows(self._handle, layer, pointer(counts[layer], "int64_t"))
        return counts.swapaxes(0, 1)

    def total(self) -> int:
        """All tokens: over windows, layers and experts."""
        return sum(lib.eplb_load_total(self._handle, layer) for layer in range(self.num_layers))

    def _check(self) -> None:
        """Raises InvalidError if borrowed counts were changed to what no load may hold: searches rely on them.

        Source: ``eplb_load_is_valid``.
        """
        if not lib.eplb_load_is_valid(self._handle):
            raise InvalidError(
                "the counts were changed after the load was made: expected at least 0, with sums that fit in 63 bits"
            )

    def _relative(self) -> NDArray[np.float64]:
        """[L, E]: load of each expert over the mean of its layer."""
        return display.over_mean(self.sum().astype(np.float64))

    def heatmap(self, axes: Any = None) -> Any:
        """Draws the load of each expert over its layer's mean with matplotlib; returns the axes."""
        return display.heatmap(self._relative(), "expert", axes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Load) and lib.eplb_load_equal(self._handle, other._handle)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return Load, (self._counts.copy(),)

    def __repr__(self) -> str:
        windows, layers, experts = self.shape
        return f"Load({windows} windows, {layers} layers, {experts} experts, {self.total()} tokens)"

    def _repr_html_(self) -> str:
        relative = self._relative()
        figures = {
            "windows": self.num_windows,
            "tokens": self.total(),
            "hottest expert over mean": f"{relative.max():.2f}",
        }
        return display.html("Load", figures, relative, "expert")


def as_load(value: Any) -> Load:
    """`value` itself if it is a Load, else a Load made from it."""
    return value if isinstance(value, Load) else Load(value)

"""Tables for engines that route by their own kernels: repeat tables for unequal shares, SGLang's static table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

import numpy as np

from eplb import arrays
from eplb.errors import InvalidError
from eplb.native import ffi, lib, new_error, pointer, pointer_or_null, raise_for
from eplb.placement import Placement, as_placement, as_shares

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from eplb.document import SavedPlan
    from eplb.planning import Plan


class RepeatTable(NamedTuple):
    """Entries [L, E, width] padded with -1, how many count [L, E], and the largest difference of a share from the one served."""

    table: NDArray[Any]
    counts: NDArray[Any]
    worst_error: float


def repeat_table(
    placement: Placement | Plan | SavedPlan, shares: Any, width: SupportsIndex, dtype: Any = np.int64
) -> RepeatTable:
    """Weighted shares for an engine that picks ``table[e][x % count[e]]``: slots are listed in proportion.

    Parameters
    ----------
    placement : Placement, Plan or SavedPlan
        Where the replicas are.
    shares : [L, S]
        The share each slot is to serve of its expert's tokens.
    width : int
        Most entries of one expert; more follow the shares more closely.
    dtype : int32 or int64
        Of the tables.

    Returns
    -------
    RepeatTable

    Source: ``eplb_repeat_table_int64``, ``eplb_repeat_table_int32``.
    """
    wanted, c_type = arrays.of_slots(dtype)
    where = as_placement(placement)
    rows = as_shares(shares, where)
    if rows is None:
        raise InvalidError("shares is None: expected [L, S]")
    columns = arrays.size(width, "width", lib.EPLB_MAX_ROW)
    table = np.empty((where.num_layers, where.num_experts, columns), dtype=wanted)
    count = np.empty((where.num_layers, where.num_experts), dtype=wanted)
    worst = ffi.new("double *")
    error = new_error()
    fill = lib.eplb_repeat_table_int32 if wanted == np.int32 else lib.eplb_repeat_table_int64
    status = fill(
        where._handle,
        pointer_or_null(rows, "double"),
        columns,
        pointer(table, c_type),
        pointer(count, c_type),
        worst,
        ffi.NULL,
        error,
    )
    raise_for(status, error)
    return RepeatTable(table, count, worst[0])


def sglang_static(placement: Placement | Plan | SavedPlan) -> NDArray[np.int32]:
    """[G, L, E] int32: the slot that SGLang's ``static`` dispatch gives each source rank for each expert.

    Source: ``eplb_sglang_static``.
    """
    where = as_placement(placement)
    own = np.empty((where.topology.num_ranks, where.num_layers, where.num_experts), dtype=np.int32)
    error = new_error()
    raise_for(lib.eplb_sglang_static(where._handle, pointer(own, "int32_t"), ffi.NULL, error), error)
    return own

"""Drop-in for DeepSeek's module: the same three functions, answers, shapes and dtypes; torch or NumPy in, same out.

Faithful to the original, its known faults included (see the migration page of the documentation); for better plans use
:func:`eplb.plan`. Tensors come back on the device of the weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from eplb import arrays
from eplb.errors import InvalidError
from eplb.native import ffi, lib, new_error, pointer, raise_for

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _weights(weight: Any) -> NDArray[np.float32]:
    array = arrays.as_floats(weight, "weight", np.float32)
    if array.ndim != 2:
        raise InvalidError(f"weight has shape {array.shape}: expected 2 dimensions")
    return array


def balanced_packing(weight: Any, num_packs: SupportsIndex) -> tuple[Any, Any]:
    """Packs the items of each row into packs of equal size so that pack weights are balanced.

    Parameters
    ----------
    weight : [X, n]
        Weight of each item.
    num_packs : int
        Number of packs; divides n.

    Returns
    -------
    pack_index, rank_in_pack : [X, n] int64
        The pack of each item and its place inside the pack.

    Source: ``eplb_balanced_packing``.
    """
    rows = _weights(weight)
    packed = np.empty((2, *rows.shape), dtype=np.int32)
    error = new_error()
    status = lib.eplb_balanced_packing(
        pointer(rows, "float"),
        arrays.size(rows.shape[0], "number of rows"),
        arrays.size(rows.shape[1], "number of items"),
        arrays.size(num_packs, "num_packs"),
        pointer(packed[0], "int32_t"),
        pointer(packed[1], "int32_t"),
        ffi.NULL,
        error,
    )
    raise_for(status, error)
    wide = packed.astype(np.int64)
    return arrays.like(weight, wide[0]), arrays.like(weight, wide[1])


def replicate_experts(weight: Any, num_phy: SupportsIndex) -> tuple[Any, Any, Any]:
    """Replicates experts so that the largest load per replica is least.

    Parameters
    ----------
    weight : [X, num_log]
        Load of each logical expert.
    num_phy : int
        Number of replicas in all.

    Returns
    -------
    phy2log : [X, num_phy] int64
        Logical expert of each replica.
    rank : [X, num_phy] int64
        Number of the replica among those of its expert.
    logcnt : [X, num_log] int64
        Replicas of each expert.

    Source: ``eplb_replicate_experts``.
    """
    rows = _weights(weight)
    slots = arrays.slots(num_phy, "num_phy")
    replicas = np.empty((2, rows.shape[0], slots), dtype=np.int32)
    counts = np.empty(rows.shape, dtype=np.int32)
    error = new_error()
    status = lib.eplb_replicate_experts(
        pointer(rows, "float"),
        arrays.size(rows.shape[0], "number of rows"),
        arrays.size(rows.shape[1], "number of experts"),
        slots,
        pointer(replicas[0], "int32_t"),
        pointer(replicas[1], "int32_t"),
        pointer(counts, "int32_t"),
        ffi.NULL,
        error,
    )
    raise_for(status, error)
    wide = replicas.astype(np.int64)
    return arrays.like(weight, wide[0]), arrays.like(weight, wide[1]), arrays.like(weight, counts.astype(np.int64))


def rebalance_experts(
    weight: Any, num_replicas: SupportsIndex, num_groups: SupportsIndex, num_nodes: SupportsIndex, num_gpus: SupportsIndex
) -> tuple[Any, Any, Any]:
    """DeepSeek's planner: hierarchical when groups divide by nodes, else global.

    Parameters
    ----------
    weight : [layers, num_logical_experts]
        Load of every logical expert.
    num_replicas : int
        Number of physical experts; a multiple of ``num_gpus``.
    num_groups : int
        Expert groups; divides the number of experts.
    num_nodes : int
        Nodes; divides ``num_gpus``.
    num_gpus : int
        Ranks.

    Returns
    -------
    physical_to_logical_map : [layers, num_replicas] int64
        Logical expert of each physical one.
    logical_to_physical_map : [layers, num_logical_experts, width] int64
        Physical experts of each logical one, padded with -1 to the largest count.
    logical_count : [layers, num_logical_experts] int64
        Physical experts of each logical one, counted.

    Source: ``eplb_rebalance_experts``, ``eplb_rebalance_tables_int64``.
    """
    rows = _weights(weight)
    layers = arrays.size(rows.shape[0], "number of layers")
    experts = arrays.size(rows.shape[1], "number of experts")
    slots = arrays.slots(num_replicas, "num_replicas")
    physical = np.empty((2, layers, slots), dtype=np.int32)
    counts = np.empty((layers, experts), dtype=np.int32)
    held, number, count = pointer(physical[0], "int32_t"), pointer(physical[1], "int32_t"), pointer(counts, "int32_t")
    error = new_error()
    status = lib.eplb_rebalance_experts(
        pointer(rows, "float"),
        layers,
        experts,
        slots,
        arrays.size(num_groups, "num_groups"),
        arrays.size(num_nodes, "num_nodes"),
        arrays.size(num_gpus, "num_gpus"),
        held,
        number,
        count,
        ffi.NULL,
        error,
    )
    raise_for(status, error)
    width = int(counts.max())
    wide = np.empty((layers, slots), dtype=np.int64)
    dense = np.empty((layers, experts, width), dtype=np.int64)
    wide_counts = np.empty((layers, experts), dtype=np.int64)
    status = lib.eplb_rebalance_tables_int64(
        layers,
        experts,
        slots,
        width,
        held,
        number,
        count,
        pointer(wide, "int64_t"),
        pointer(dense, "int64_t"),
        pointer(wide_counts, "int64_t"),
        error,
    )
    raise_for(status, error)
    return arrays.like(weight, wide), arrays.like(weight, dense), arrays.like(weight, wide_counts)

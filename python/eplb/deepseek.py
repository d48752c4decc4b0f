"""Drop-in for DeepSeek's module: the same three functions, answers, shapes and dtypes; torch or NumPy in, same out.

Faithful to the original, its known faults included (see the migration page of the documentation); for better plans use
:func:`eplb.plan`.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from eplb import arrays
from eplb.errors import InvalidError
from eplb.native import ffi, lib, new_error, pointer, raise_for


def _weights(weight: Any) -> np.ndarray:
    array = arrays.as_numpy(weight, "weight")
    if array.ndim != 2:
        raise InvalidError(f"weight has shape {array.shape}: expected 2 dimensions")
    return np.ascontiguousarray(array, dtype=np.float32)


def balanced_packing(weight: Any, num_packs: int) -> tuple[Any, Any]:
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
    raise_for(
        lib.eplb_balanced_packing(
            pointer(rows, "float"), rows.shape[0], rows.shape[1], num_packs,
            pointer(packed[0], "int32_t"), pointer(packed[1], "int32_t"), ffi.NULL, error,
        ),
        error,
    )
    wide = packed.astype(np.int64)
    return arrays.like(weight, wide[0]), arrays.like(weight, wide[1])


def replicate_experts(weight: Any, num_phy: int) -> tuple[Any, Any, Any]:
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
    replicas = np.empty((2, rows.shape[0], max(num_phy, 0)), dtype=np.int32)
    counts = np.empty(rows.shape, dtype=np.int32)
    error = new_error()
    raise_for(
        lib.eplb_replicate_experts(
            pointer(rows, "float"), rows.shape[0], rows.shape[1], num_phy, pointer(replicas[0], "int32_t"),
            pointer(replicas[1], "int32_t"), pointer(counts, "int32_t"), ffi.NULL, error,
        ),
        error,
    )
    wide = replicas.astype(np.int64)
    return arrays.like(weight, wide[0]), arrays.like(weight, wide[1]), arrays.like(weight, counts.astype(np.int64))


def rebalance_experts(
    weight: Any, num_replicas: int, num_groups: int, num_nodes: int, num_gpus: int
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
    logical_to_physical_map : [layers, num_logical_experts, width] int64
        Physical experts of each logical one, padded with -1 to the largest count.
    logical_count : [layers, num_logical_experts] int64

    Source: ``eplb_rebalance_experts``.
    """
    rows = _weights(weight)
    num_layers, num_logical = rows.shape
    physical = np.empty((2, num_layers, max(num_replicas, 0)), dtype=np.int32)
    counts = np.empty(rows.shape, dtype=np.int32)
    error = new_error()
    raise_for(
        lib.eplb_rebalance_experts(
            pointer(rows, "float"), num_layers, num_logical, num_replicas, num_groups, num_nodes, num_gpus,
            pointer(physical[0], "int32_t"), pointer(physical[1], "int32_t"), pointer(counts, "int32_t"), ffi.NULL,
            error,
        ),
        error,
    )
    width = int(counts.max())
    dense = np.full((num_layers, num_logical * width), -1, dtype=np.int64)
    place = physical[0].astype(np.int64) * width + physical[1]
    np.put_along_axis(dense, place, np.arange(num_replicas, dtype=np.int64)[None, :], axis=1)
    return (
        arrays.like(weight, physical[0].astype(np.int64)),
        arrays.like(weight, dense.reshape(num_layers, num_logical, width)),
        arrays.like(weight, counts.astype(np.int64)),
    )

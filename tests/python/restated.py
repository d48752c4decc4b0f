"""DeepSeek's module restated with NumPy and plain loops, in single precision, for comparison with ours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def balanced_packing(weight: Array, packs: int) -> tuple[Array, Array]:
    """Heaviest first into the lightest pack with room."""
    rows, items = weight.shape
    room = items // packs
    pack, place = np.zeros((2, rows, items), dtype=np.int64)
    for row in range(rows):
        if room == 1:
            pack[row] = np.arange(items)
            continue
        total, held = np.zeros(packs, np.float32), np.zeros(packs, np.int64)
        for item in np.argsort(-weight[row], kind="stable"):
            best = int(np.argmin(np.where(held < room, total, np.inf)))
            pack[row, item], place[row, item] = best, held[best]
            total[best] = total[best] + weight[row, item]
            held[best] += 1
    return pack, place


def replicate_experts(weight: Array, slots: int) -> tuple[Array, Array, Array]:
    """Each spare to the expert with the largest weight per replica."""
    rows, experts = weight.shape
    holder = np.tile(np.arange(experts), (rows, 1))
    number = np.zeros((rows, experts), dtype=np.int64)
    count = np.ones((rows, experts), dtype=np.int64)
    for _ in range(slots - experts):
        hottest = np.argmax(weight / count.astype(np.float32), axis=1)
        holder = np.column_stack([holder, hottest])
        number = np.column_stack([number, count[np.arange(rows), hottest]])
        count[np.arange(rows), hottest] += 1
    return holder, number, count


def _layer(weight: Array, slots: int, groups: int, nodes: int, ranks: int) -> tuple[Array, Array, Array]:
    """(expert of each slot, number of each slot's replica, replicas of each expert) of one layer."""
    experts = len(weight)
    size, node_experts, node_slots = experts // groups, experts // nodes, slots // nodes
    sums = np.array([weight[g * size : (g + 1) * size].sum(dtype=np.float32) for g in range(groups)], np.float32)
    node_of, _ = balanced_packing(sums[None], nodes)
    held, numbers = np.empty(slots, np.int64), np.empty(slots, np.int64)
    count = np.empty(experts, np.int64)
    _, place = balanced_packing(sums[None], nodes)
    for node in range(nodes):
        mine = sorted(np.flatnonzero(node_of[0] == node), key=lambda g: int(place[0, g]))
        logical = np.concatenate([np.arange(g * size, (g + 1) * size) for g in mine])
        assert len(logical) == node_experts
        holder, number, counts = replicate_experts(weight[logical][None], node_slots)
        count[logical] = counts[0]
        per_replica = (weight[logical] / counts[0].astype(np.float32))[holder[0]]
        rank, position = balanced_packing(per_replica[None], ranks // nodes)
        slot = node * node_slots + rank[0] * (slots // ranks) + position[0]
        held[slot], numbers[slot] = logical[holder[0]], number[0]
    return held, numbers, count


def rebalance_experts(weight: Array, slots: int, groups: int, nodes: int, ranks: int) -> tuple[Array, Array, Array]:
    """The whole module."""
    if groups % nodes:
        groups = nodes = 1
    rows = [_layer(row, slots, groups, nodes, ranks) for row in weight.astype(np.float32)]
    held, number, count = (np.stack(parts) for parts in zip(*rows))
    table = np.full((*weight.shape, count.max()), -1, dtype=np.int64)
    for layer in range(len(weight)):
        table[layer, held[layer], number[layer]] = np.arange(slots)
    return held, table, count

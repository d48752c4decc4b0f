"""DeepSeek's module restated in torch operations, step by step as published: the baseline of the bench, and a reference
of the tests. Three tensors come out, as from the original. One thing is fixed that the original leaves to its tensor
library: the sort is stable, so that replicas of one expert, which weigh the same, keep their order."""

from __future__ import annotations

from typing import Any

import torch

Tensor = Any


def pack(weight: Tensor, packs: int) -> tuple[Tensor, Tensor]:
    """Heaviest item first into the lightest pack that has room: (pack, place inside it) of each item."""
    rows, items = weight.shape
    room = items // packs
    if room == 1:
        return torch.arange(items).expand(rows, items), torch.zeros(rows, items, dtype=torch.int64)
    chosen = torch.zeros(rows, items, dtype=torch.int64)
    place = torch.zeros(rows, items, dtype=torch.int64)
    order = torch.sort(weight, dim=1, descending=True, stable=True)[1]
    for row in range(rows):
        total = torch.zeros(packs)
        held = torch.zeros(packs, dtype=torch.int64)
        for item in order[row]:
            best = total.masked_fill(held == room, torch.inf).argmin()
            chosen[row, item] = best
            place[row, item] = held[best]
            total[best] += weight[row, item]
            held[best] += 1
    return chosen, place


def replicate(weight: Tensor, slots: int) -> tuple[Tensor, Tensor, Tensor]:
    """Each spare to the largest weight per replica: (expert, number) of each replica, replicas of each expert."""
    rows, experts = weight.shape
    expert = torch.arange(slots).expand(rows, slots).clone()
    number = torch.zeros(rows, slots, dtype=torch.int64)
    count = torch.ones(rows, experts, dtype=torch.int64)
    every = torch.arange(rows)
    for slot in range(experts, slots):
        hottest = (weight / count).argmax(dim=1)
        expert[:, slot] = hottest
        number[:, slot] = count[every, hottest]
        count[every, hottest] += 1
    return expert, number, count


def rebalance_experts(load: Tensor, slots: int, groups: int, nodes: int, ranks: int) -> tuple[Tensor, Tensor, Tensor]:
    """(physical_to_logical_map, logical_to_physical_map, logical_count)."""
    if groups % nodes:
        groups = nodes = 1
    weight = load.float()
    layers, experts = weight.shape
    size, in_node, node_slots, per_rank = experts // groups, experts // nodes, slots // nodes, slots // ranks
    node, place = pack(weight.reshape(layers, groups, size).sum(dim=2), nodes)
    start = (node * (groups // nodes) + place) * size
    inner_of = (start[:, :, None] + torch.arange(size)).reshape(layers, experts)
    logical_of = inner_of.argsort(dim=1)
    inner = weight.gather(1, logical_of).reshape(layers * nodes, in_node)
    expert, number, count = replicate(inner, node_slots)
    rank, position = pack((inner / count).gather(1, expert), ranks // nodes)
    slot = rank * per_rank + position
    expert_in = torch.empty_like(expert).scatter_(1, slot, expert).reshape(layers, nodes, node_slots)
    number_in = torch.empty_like(number).scatter_(1, slot, number).reshape(layers, slots)
    inner_in = (expert_in + torch.arange(nodes)[:, None] * in_node).reshape(layers, slots)
    held = logical_of.gather(1, inner_in)
    counts = count.reshape(layers, experts).gather(1, inner_of)
    width = int(counts.max())
    table = torch.full((layers, experts * width), -1)
    table.scatter_(1, held * width + number_in, torch.arange(slots).expand(layers, slots))
    return held, table.reshape(layers, experts, width), counts

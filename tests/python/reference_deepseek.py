#!/usr/bin/python3
"""DeepSeek's planner restated with tensors and compared with the library's on thousands of random loads.

The restatement follows the published module step by step in the tensor library that the module uses, so that single
precision, rounding of large counts, maxima and sorts are the original's own. Replica counts must agree exactly and the
imbalance to 1e-6; where no two weights are equal the placement must be the same slot for slot.

    reference_deepseek.py LIBEPLB_SO [ROUNDS]
"""

import ctypes
import sys

try:
    import numpy as np
    import torch
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

FLOATS = ctypes.POINTER(ctypes.c_float)
INTS = ctypes.POINTER(ctypes.c_int32)


def pack(weight: torch.Tensor, num_packs: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Heaviest item first into the lightest pack that has room: (pack of each item, place inside it)."""
    rows, items = weight.shape
    room = items // num_packs
    if room == 1:
        return torch.arange(items).repeat(rows, 1), torch.zeros(rows, items, dtype=torch.int64)
    chosen = torch.full((rows, items), -1, dtype=torch.int64)
    place = torch.full((rows, items), -1, dtype=torch.int64)
    for row, order in enumerate(weight.sort(dim=-1, descending=True).indices.tolist()):
        load = [torch.tensor(0.0)] * num_packs
        held = [0] * num_packs
        for item in order:
            open_packs = [p for p in range(num_packs) if held[p] < room]
            best = min(open_packs, key=lambda p: load[p])
            chosen[row, item], place[row, item] = best, held[best]
            load[best] = load[best] + weight[row, item]
            held[best] += 1
    return chosen, place


def replicate(weight: torch.Tensor, slots: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Spare slots to the largest weight per replica: (expert of each replica, replicas of each expert)."""
    rows, experts = weight.shape
    holder = torch.arange(experts).repeat(rows, 1)
    count = torch.ones(rows, experts, dtype=torch.int64)
    for _ in range(slots - experts):
        hottest = (weight / count).max(dim=-1).indices
        holder = torch.cat([holder, hottest[:, None]], dim=1)
        count[torch.arange(rows), hottest] += 1
    return holder, count


def rebalance(load: torch.Tensor, slots: int, groups: int, nodes: int, ranks: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(expert of each slot, replicas of each expert)."""
    if groups % nodes:
        groups = nodes = 1
    weight = load.float()
    layers, experts = weight.shape
    size, per_node, node_slots = experts // groups, experts // nodes, slots // nodes
    node, place = pack(weight.reshape(layers, groups, size).sum(-1), nodes)
    first = (node * (groups // nodes) + place) * size
    inner_of = (first[:, :, None] + torch.arange(size)).reshape(layers, experts)
    logical_of = torch.argsort(inner_of, dim=-1)
    inner = weight.gather(-1, logical_of).reshape(layers * nodes, per_node)
    holder, count = replicate(inner, node_slots)
    rank, position = pack((inner / count).gather(-1, holder), ranks // nodes)
    slot = rank * (slots // ranks) + position
    in_slot = torch.empty_like(holder).scatter_(-1, slot, holder).reshape(layers, nodes, node_slots)
    in_slot = (in_slot + (torch.arange(nodes) * per_node)[:, None]).reshape(layers, slots)
    return logical_of.gather(-1, in_slot), count.reshape(layers, experts).gather(-1, inner_of)


def ours(library: ctypes.CDLL, load: np.ndarray, shape: tuple[int, int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    slots, groups, nodes, ranks = shape
    weight = np.ascontiguousarray(load.astype(np.float32))
    layers, experts = weight.shape
    held = np.empty((layers, slots), np.int32)
    count = np.empty((layers, experts), np.int32)
    status = library.eplb_rebalance_experts(
        weight.ctypes.data_as(FLOATS), layers, experts, slots, groups, nodes, ranks,
        held.ctypes.data_as(INTS), None, count.ctypes.data_as(INTS), None, None,
    )  # fmt: skip
    assert status == 0, (status, load.shape, shape)
    return held, count


def imbalance(load: np.ndarray, held: np.ndarray, count: np.ndarray, ranks: int) -> np.ndarray:
    weight = load.astype(np.float64)
    share = np.take_along_axis(weight / count, held.astype(np.int64), axis=1)
    rank_load = share.reshape(len(load), ranks, -1).sum(-1)
    mean = rank_load.mean(-1)
    return np.where(mean > 0, rank_load.max(-1) / np.where(mean > 0, mean, 1), 1.0)


def draw_shape(random: np.random.Generator) -> tuple[int, tuple[int, int, int, int]]:
    """(experts, (slots, groups, nodes, ranks)) that the original takes."""
    nodes = int(random.integers(1, 5))
    ranks = nodes * int(random.integers(1, 6))
    groups = nodes * int(random.integers(1, 5))
    size = int(random.integers(1, 70)) if random.random() < 0.2 else int(random.integers(1, 17))
    if random.random() < 0.2:
        groups += 1  # mostly global
    experts = groups * size
    per_rank = -(-experts // ranks) + int(random.integers(0, 4))
    return experts, (per_rank * ranks, groups, nodes, ranks)


def draw_load(random: np.random.Generator, layers: int, experts: int, groups: int) -> np.ndarray:
    kind = random.integers(0, 8)
    shape = (layers, experts)
    if kind == 7:  # groups of the same numbers: the rounding of their sums decides
        numbers = random.integers(1 << 24, 1 << 40, experts // groups)
        return np.stack([np.concatenate([random.permutation(numbers) for _ in range(groups)]) for _ in range(layers)])
    if kind == 0:
        return random.integers(0, 1000, shape)
    if kind == 1:
        return random.integers(0, 4, shape)  # ties and zeros
    if kind == 2:
        return random.integers(1 << 24, 1 << 40, shape)  # rounded by single precision
    if kind == 3:
        return random.random(shape).astype(np.float32)
    if kind == 4:
        return np.rint(1e6 * np.exp(2.0 * random.standard_normal(shape))).astype(np.int64)
    if kind == 5:
        return random.integers(0, 2, shape) * random.integers(0, 1 << 50, shape)  # dead experts
    return np.zeros(shape, np.int64)


def compare(library: ctypes.CDLL, load: np.ndarray, shape: tuple[int, int, int, int]) -> None:
    held, count = ours(library, load, shape)
    expected_held, expected_count = (t.numpy() for t in rebalance(torch.from_numpy(load), *shape))
    assert (count == expected_count).all(), ("counts differ", load.tolist(), shape)
    mine = imbalance(load, held, count, shape[3])
    theirs = imbalance(load, expected_held, expected_count, shape[3])
    assert np.abs(mine - theirs).max() <= 1e-6, ("imbalance differs", load.tolist(), shape, mine, theirs)
    for row in range(len(load)):
        weight = load[row].astype(np.float32)
        per_replica = np.unique(weight / expected_count[row].astype(np.float32))
        if len(per_replica) == len(weight):
            assert (held[row] == expected_held[row]).all(), ("slots differ", load[row].tolist(), shape)


def main() -> int:
    library = ctypes.CDLL(sys.argv[1])
    library.eplb_rebalance_experts.restype = ctypes.c_int
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 600
    torch.set_num_threads(1)
    random = np.random.default_rng(20240917)
    for _ in range(rounds):
        experts, shape = draw_shape(random)
        compare(library, draw_load(random, 5, experts, shape[1]), shape)
    print(f"{rounds * 5} layers agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())

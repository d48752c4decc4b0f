"""What the drop-in costs: the C calls, the same from NumPy and from torch, and the original restated in torch.

[58, 256] loads on 288 slots, 8 groups, 4 nodes, 32 ranks. Medians; every answer is compared with the restatement's.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any, Callable

import numpy as np

import eplb
from eplb.native import ffi, lib, pointer

LAYERS, EXPERTS, SLOTS, GROUPS, NODES, RANKS = 58, 256, 288, 8, 4, 32


def medians(calls: dict[str, Callable[[], Any]], repetitions: int) -> dict[str, float]:
    """Median microseconds of each call, taken in turns, so that a slow moment of the machine meets all."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repetitions):
        for name, call in calls.items():
            begun = time.perf_counter()
            call()
            times[name].append(1e6 * (time.perf_counter() - begun))
    return {name: statistics.median(values) for name, values in times.items()}


def c_call(load: Any) -> Callable[[], Any]:
    """The C planner alone, on arrays that are there already."""
    rows = load.astype(np.float32)
    held = np.empty((2, LAYERS, SLOTS), dtype=np.int32)
    count = np.empty((LAYERS, EXPERTS), dtype=np.int32)
    arguments = (
        *(pointer(rows, "float"), LAYERS, EXPERTS, SLOTS, GROUPS, NODES, RANKS),
        *(pointer(held[0], "int32_t"), pointer(held[1], "int32_t"), pointer(count, "int32_t"), ffi.NULL, ffi.NULL),
    )
    return lambda: lib.eplb_rebalance_experts(*arguments)


def run(repetitions: int) -> dict[str, Any]:
    random = np.random.default_rng(7)
    # Loads that single precision holds exactly and no two of which are alike, so that no answer depends on ties.
    load = np.stack([random.permutation(EXPERTS * 40)[:EXPERTS] for _ in range(LAYERS)]) * 97 + 1009
    load = (load * np.exp(0.7 * random.standard_normal(load.shape))).astype(np.int64)
    size = (SLOTS, GROUPS, NODES, RANKS)
    calls = {"C": c_call(load), "NumPy": lambda: eplb.rebalance_experts(load, *size)}
    figures: dict[str, Any] = {}
    try:
        import restatement
        import torch
    except ImportError:
        figures["torch"] = "not installed"
    else:
        torch.set_num_threads(1)
        tensor = torch.from_numpy(load)
        calls["torch"] = lambda: eplb.rebalance_experts(tensor, *size)
        expected = restatement.rebalance_experts(tensor, *size)
        figures["same"] = all(torch.equal(a, b) for a, b in zip(calls["torch"](), expected))
        slow = {"restatement": lambda: restatement.rebalance_experts(tensor, *size)}
        figures.update(medians(slow, 5))
    figures.update(medians(calls, repetitions))
    if "restatement" in figures:
        figures["ratio"] = figures["restatement"] / figures["torch"]
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=300)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    figures = run(arguments.repetitions)
    if arguments.json:
        print(json.dumps(figures))
        return
    print(f"rebalance_experts [58,256] -> 288 slots on 32 ranks, 8 groups, 4 nodes (median of {arguments.repetitions})")
    print(f"  C call                    {figures['C']:9.0f} us")
    for kind in ("NumPy", "torch"):
        if isinstance(figures.get(kind), float):
            print(f"  from {kind:20} {figures[kind]:9.0f} us, {figures[kind] - figures['C']:.0f} us more")
    if "ratio" in figures:
        print(f"  restated in torch         {figures['restatement']:9.0f} us, {figures['ratio']:.0f} times as long")
        print(f"  same output: {'yes' if figures['same'] else 'NO'}")


if __name__ == "__main__":
    main()

"""The installed package without torch: DeepSeek's published example, a plan, its router, its file."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile

import numpy as np

import eplb

LOAD = np.array(
    [[90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86], [20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27]]
)
SLOTS = [[5, 6, 5, 7, 8, 4, 3, 4, 10, 9, 10, 2, 0, 1, 11, 1], [7, 10, 6, 8, 6, 11, 8, 9, 2, 4, 5, 1, 5, 0, 3, 1]]


def main() -> None:
    assert importlib.util.find_spec("torch") is None, "this environment is meant to lack torch"
    held, slots, count = eplb.rebalance_experts(LOAD, 16, 4, 2, 8)
    assert held.tolist() == SLOTS and held.dtype == slots.dtype == count.dtype == np.int64
    plan = eplb.plan(LOAD, num_ranks=8, num_slots=16, num_nodes=2, split="weighted")
    plan.check()
    assert (eplb.Router.of(plan).route(0, np.arange(12)) >= 0).all()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "plan.json")
        plan.save(path)
        assert eplb.read_plan(path).hash == plan.hash
    loaded = {"torch", "matplotlib", "cffi.api"} & set(sys.modules)
    assert not loaded, f"importing and planning loaded {loaded}"
    print(f"smoke test: ok, eplb {eplb.__version__}, Python {sys.version.split()[0]}, NumPy {np.__version__}")


if __name__ == "__main__":
    main()

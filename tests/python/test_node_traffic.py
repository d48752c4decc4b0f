"""Tokens that must cross nodes, against the definition in NumPy."""
from typing import Any

import numpy as np

import eplb


def crossing(load: Any, placement: eplb.Placement, shares: Any, start: Any) -> Any:
    """[L]; start [N, L, E] part of each expert's tokens that starts on each node."""
    topology = placement.topology
    node = topology.rank_node[topology.slot_rank]
    served = np.zeros_like(start)
    for layer in range(placement.num_layers):
        for slot, expert in enumerate(placement.physical_to_logical[layer]):
            if expert >= 0:
                served[node[slot], layer, expert] += shares[layer, slot]
    return (np.maximum(start - served, 0) * load).sum(axis=(0, 2))


def test_against_definition() -> None:
    rng = np.random.default_rng(5)
    load = rng.integers(0, 1000, (2, 24))
    sources = rng.integers(1, 50, (8, 2, 24))
    plan = eplb.plan(load, num_ranks=8, num_slots=40, num_nodes=4, split="weighted")
    start = np.full((4, 2, 24), 0.25)
    np.testing.assert_allclose(plan.cross_node_tokens(), crossing(load, plan.placement, plan.shares, start))
    start = (sources / sources.sum(0)).reshape(4, 2, 2, 24).sum(1)
    np.testing.assert_allclose(
        plan.placement.cross_node_tokens(load, plan.shares, sources),
        crossing(load, plan.placement, plan.shares, start),
    )
    assert plan.to_dict()["metrics"]["cross_node_tokens"] == plan.cross_node_tokens().tolist()


def test_one_node_crosses_nothing() -> None:
    plan = eplb.plan(np.arange(8), num_ranks=4, num_slots=8)
    assert plan.cross_node_tokens().tolist() == [0.0]
    assert "cross_node_tokens" not in plan.to_dict()["metrics"]

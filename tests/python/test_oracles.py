"""Plans against exact optima from HiGHS: equal splits by mixed-integer programmes, weighted ones by linear programmes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_splitting import least_largest

import eplb

optimize = pytest.importorskip("scipy.optimize")


def least_equal(load: np.ndarray, ranks: int, per_rank: int) -> float:
    """The least largest rank load of all equal splits that fill the slots, no expert twice on a rank.

    y[e, c, g] = 1: expert e has c + 1 replicas, one of them on rank g. z[e, c] = 1: expert e has c + 1 replicas.
    """
    experts = len(load)
    y = np.arange(experts * ranks * ranks).reshape(experts, ranks, ranks)
    z = y.size + np.arange(experts * ranks).reshape(experts, ranks)
    size = y.size + z.size + 1
    limits = []
    for rank in range(ranks):
        weight, held = np.zeros((2, size))
        weight[y[:, :, rank]] = load[:, None] / np.arange(1, ranks + 1)
        weight[-1] = -1
        held[y[:, :, rank]] = 1
        limits += [optimize.LinearConstraint(weight, ub=0), optimize.LinearConstraint(held, per_rank, per_rank)]
    for expert in range(experts):
        one = np.zeros(size)
        one[z[expert]] = 1
        limits.append(optimize.LinearConstraint(one, 1, 1))
        for count in range(ranks):
            copies = np.zeros(size)
            copies[y[expert, count]] = 1
            copies[z[expert, count]] = -(count + 1)
            limits.append(optimize.LinearConstraint(copies, 0, 0))
    bounds = optimize.Bounds(0, [1] * (size - 1) + [np.inf])
    answer = optimize.milp(
        np.eye(size)[-1], integrality=[1] * (size - 1) + [0], bounds=bounds, constraints=limits
    )
    assert answer.status == 0
    return float(answer.fun)


@pytest.mark.parametrize("shape", [(4, 2, 3), (4, 3, 2), (5, 2, 3), (5, 3, 2), (7, 3, 3), (6, 4, 2)])
def test_equal_split_against_every_placement(shape: tuple[int, int, int]) -> None:
    experts, ranks, per_rank = shape
    random = np.random.default_rng(experts)
    excess = []
    for _ in range(6):
        load = random.integers(1, 40, experts)
        optimum = least_equal(load, ranks, per_rank) / (load.sum() / ranks)
        plan = eplb.plan(load, num_ranks=ranks, num_slots=ranks * per_rank)
        assert plan.lower_bound[0] <= optimum + 1e-6
        excess.append(plan.imbalance[0] / optimum - 1)
        assert excess[-1] >= -1e-6
    assert np.mean(excess) <= 0.01, excess


@given(st.integers(2, 5), st.integers(1, 4), st.data())
def test_weighted_is_exact_where_spare_slots_allow(ranks: int, spread: int, data: st.DataObject) -> None:
    """S >= E + G - 1: every rank at the mean, whatever the load."""
    slots = data.draw(st.integers(2, 6)) * ranks
    experts = data.draw(st.integers(1, slots - ranks + 1))
    load = np.array(data.draw(st.lists(st.integers(0, 10**spread), min_size=experts, max_size=experts)))
    plan = eplb.plan(load, num_ranks=ranks, num_slots=slots, split="weighted")
    assert plan.imbalance[0] == pytest.approx(1.0, abs=1e-9) and plan.lower_bound[0] == 1.0
    if load.any():
        assert least_largest(plan.placement, load) == pytest.approx(load.sum() / ranks, rel=1e-9)


@given(st.integers(2, 4), st.data())
def test_weighted_shares_are_the_best_of_their_placement(ranks: int, data: st.DataObject) -> None:
    per_rank = data.draw(st.integers(1, 3))
    experts = data.draw(st.integers(max(1, ranks * per_rank - ranks + 1), ranks * per_rank))
    load = np.array(data.draw(st.lists(st.integers(1, 200), min_size=experts, max_size=experts)))
    plan = eplb.plan(load, num_ranks=ranks, num_slots=ranks * per_rank, split="weighted")
    optimum = least_largest(plan.placement, load) / (load.sum() / ranks)
    assert plan.imbalance[0] == pytest.approx(optimum, rel=1e-6)
    assert plan.lower_bound[0] <= optimum + 1e-9


def test_batch_plans_are_as_good_as_their_resplit(load: np.ndarray) -> None:
    """What a plan for re-split batches says of itself is what HiGHS finds for its placement."""
    plan = eplb.plan(load, num_ranks=8, num_slots=40, split="batch")
    for layer in range(6):
        placement = eplb.Placement(plan.topology, plan.physical_to_logical[layer], 32)
        optimum = least_largest(placement, load[layer]) / (load[layer].sum() / 8)
        assert plan.imbalance[layer] >= optimum - 1e-9 and plan.lower_bound[layer] <= optimum + 1e-9
        assert eplb.resplit(load[layer], placement).bound[0] == pytest.approx(optimum * load[layer].sum() / 8)

"""Splits of one batch against linear programmes (HiGHS) and brute force."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eplb

optimize = pytest.importorskip("scipy.optimize")


@st.composite
def cases(draw: Any, most_experts: int = 6) -> tuple[eplb.Placement, np.ndarray]:
    """A placement of one layer in which every expert has a replica, and a batch."""
    ranks, experts = draw(st.integers(1, 4)), draw(st.integers(1, most_experts))
    per_rank = -(-experts // ranks) + draw(st.integers(0, 2))
    order = draw(st.permutations(range(ranks * per_rank)))
    extra = draw(st.lists(st.integers(-1, experts - 1), min_size=ranks * per_rank, max_size=ranks * per_rank))
    slots = np.array(extra)
    slots[list(order[:experts])] = np.arange(experts)
    speeds = draw(st.sampled_from([None, list(range(1, ranks + 1))]))
    load = np.array(draw(st.lists(st.integers(0, 200), min_size=experts, max_size=experts)))
    return eplb.Placement(eplb.Topology(ranks, per_rank, rank_speed=speeds), slots, experts), load


def least_largest(placement: eplb.Placement, load: np.ndarray) -> float:
    """T*: the least largest load / speed over all fractional splits, by HiGHS."""
    held, topology = placement.physical_to_logical[0], placement.topology
    slots, ranks = len(held), topology.num_ranks
    serve = np.zeros((placement.num_experts, slots + 1))
    limit = np.zeros((ranks, slots + 1))
    for slot, expert in enumerate(held):
        if expert >= 0:
            serve[expert, slot] = 1
            limit[topology.slot_rank[slot], slot] = 1
    limit[:, -1] = -topology.rank_speed
    bounds = [(0, None if expert >= 0 else 0) for expert in held] + [(0, None)]
    answer = optimize.linprog(
        np.eye(slots + 1)[-1], A_ub=limit, b_ub=np.zeros(ranks), A_eq=serve, b_eq=load, bounds=bounds, method="highs"
    )
    assert answer.status == 0
    return float(answer.fun)


@given(cases())
def test_resplit_is_exact(case: tuple[eplb.Placement, np.ndarray]) -> None:
    placement, load = case
    solver = eplb.Resplit(placement)
    split = solver.solve(load)
    optimum = least_largest(placement, load)
    assert split.bound == pytest.approx(optimum, rel=1e-9, abs=1e-9)
    held, speed = placement.physical_to_logical[0], placement.topology.rank_speed
    assert (split.quota >= 0).all() and (split.quota[held < 0] == 0).all()
    sums = np.bincount(held[held >= 0], weights=split.quota[held >= 0], minlength=len(load))
    np.testing.assert_array_equal(sums, load)
    ranks = np.bincount(placement.topology.slot_rank, weights=split.quota, minlength=len(speed))
    assert split.max_load in ranks
    if (speed == 1).all():
        assert ranks.max() == split.max_load == math.ceil(split.bound_load / split.bound_speed if load.any() else 0)
        tight = solver.tight_experts
        reach = {int(placement.topology.slot_rank[slot]) for slot in np.flatnonzero(np.isin(held, np.flatnonzero(tight)))}
        if load.any():
            assert load[tight].sum() == split.bound_load and reach == set(np.flatnonzero(solver.tight_ranks).tolist())
    warm = solver.solve(load, warm=True)
    assert (warm.max_load, warm.bound) == (split.max_load, split.bound)


def test_a_load_too_large_overflows(load: np.ndarray) -> None:
    solver = eplb.Resplit(eplb.plan(load, num_ranks=8))
    with pytest.raises(eplb.LoadOverflowError, match="exceeds int64"):
        solver.solve(np.full(32, 1e30))
    for value in (np.nan, np.inf, 0.5):
        with pytest.raises(eplb.InvalidError, match="not whole"):
            solver.solve(np.full(32, value))


def test_a_warm_start_starts_from_the_last(load: np.ndarray, rng: np.random.Generator) -> None:
    """The same optimum by another split: nearer to the one before."""
    solver = eplb.Resplit(eplb.plan(load, num_ranks=8, num_slots=48))
    later = (load[0] * rng.uniform(0.7, 1.3, 32)).astype(np.int64)
    quotas = []
    for warm in (False, True):
        solver.solve(load[0])
        split = solver.solve(later, warm=warm)
        quotas.append(split.quota)
        assert split.max_load == eplb.Resplit(solver._placement).solve(later).max_load
    assert (quotas[0] != quotas[1]).any()


@given(cases(), st.data())
def test_sources(case: tuple[eplb.Placement, np.ndarray], data: st.DataObject) -> None:
    placement, load = case
    ranks = placement.topology.num_ranks
    cuts = [data.draw(st.lists(st.integers(0, 9), min_size=ranks, max_size=ranks)) for _ in load]
    source_load = np.array(cuts).T.copy()
    solver = eplb.Resplit(placement)
    local, plain = solver.solve_local(source_load), solver.solve(source_load.sum(axis=0))
    if (placement.topology.rank_speed == 1).all():
        assert local.max_load == plain.max_load
    part = solver.by_source(source_load, local.quota)
    np.testing.assert_array_equal(part.sum(axis=0), local.quota)
    held = placement.physical_to_logical[0]
    for expert in range(len(load)):
        np.testing.assert_array_equal(part[:, held == expert].sum(axis=1), source_load[:, expert])
    away = part * (placement.topology.slot_rank[None, :] != np.arange(ranks)[:, None])
    assert away.sum() == local.cross_rank


@given(cases(most_experts=5))
def test_decode_activates_the_fewest(case: tuple[eplb.Placement, np.ndarray]) -> None:
    placement, tokens = case
    slot, most = eplb.Resplit(placement).activate(tokens)
    held, rank = placement.physical_to_logical[0], placement.topology.slot_rank
    active = np.flatnonzero(tokens)
    assert (slot[tokens == 0] == -1).all() and (held[slot[active]] == active).all()
    counts = np.bincount(rank[slot[active]], minlength=1)
    assert counts.max() == most if len(active) else most == 0
    choices = [sorted({int(rank[s]) for s in np.flatnonzero(held == expert)}) for expert in active]
    best = min(max(np.bincount(chosen, minlength=1)) if chosen else 0 for chosen in itertools.product(*choices))
    assert most == best


def test_all_layers(load: np.ndarray) -> None:
    plan = eplb.plan(load, num_ranks=8, num_slots=40)
    quota, largest, bound, tight = eplb.resplit(load, plan)
    assert quota.shape == (6, 40) and tight.shape == (6, 32) and tight.dtype == bool
    np.testing.assert_array_equal(largest, np.ceil(bound))
    ranks = np.add.reduceat(quota, np.arange(0, 40, 5), axis=1)
    np.testing.assert_array_equal(ranks.max(axis=1), largest)
    assert (largest <= np.ceil(plan.rank_load().max(axis=1))).all()
    again = eplb.resplit(load.astype(np.float32).astype(np.float64), plan.placement)
    np.testing.assert_array_equal(again.max_load, eplb.resplit(load.astype(np.float32).astype(int), plan).max_load)
    slots, most = eplb.assign_decode(load, plan)
    assert slots.shape == (6, 32) and most.shape == (6,) and (most >= 4).all()
    share, accepted = eplb.Resplit(plan, 2).lplb(load[2])
    assert share.shape == (40,) and isinstance(accepted, bool)


def test_tensors(load: np.ndarray) -> None:
    torch = pytest.importorskip("torch", exc_type=ImportError)
    plan = eplb.plan(load, num_ranks=8, num_slots=40)
    quota = eplb.resplit(torch.from_numpy(load), plan).quota
    assert isinstance(quota, torch.Tensor) and quota.dtype == torch.int64
    assert quota.numpy().tolist() == eplb.resplit(load, plan).quota.tolist()
    assert isinstance(eplb.assign_decode(torch.from_numpy(load), plan)[0], torch.Tensor)


@pytest.mark.parametrize(
    "load, message",
    [
        ([1, 2, 3], r"shape \(3,\): expected \(4,\)"),
        ([1, 2, 3, -4], "-4"),
        ([1, 2, 3, 0.5], "not whole"),
        ([1, 2, 3, np.nan], "not whole"),
    ],
)
def test_refused(load: Any, message: str) -> None:
    solver = eplb.Resplit(eplb.Placement.initial(eplb.Topology(2, 3), 1, 4))
    with pytest.raises(eplb.InvalidError, match=message):
        solver.solve(load)
    with pytest.raises(eplb.InvalidError):
        eplb.Resplit(eplb.Placement.initial(eplb.Topology(2, 3), 1, 4), layer=1)


@given(st.integers(1, 5), st.data())
def test_shared_expert_is_level(ranks: int, data: st.DataObject) -> None:
    numbers = st.lists(st.integers(0, 60), min_size=ranks, max_size=ranks)
    routed, tokens = np.array(data.draw(numbers)), np.array(data.draw(numbers))
    part = eplb.level_shared(eplb.Topology(ranks, 1), routed, tokens, batch_floor=0)
    np.testing.assert_array_equal(part.sum(axis=1), tokens)
    level = max(int(routed.max()), math.ceil((routed.sum() + tokens.sum()) / ranks))
    assert (routed + part.sum(axis=0)).max() == level
    dear = eplb.level_shared(eplb.Topology(ranks, 1), routed, tokens, batch_floor=0, price=2.0)
    np.testing.assert_array_equal(dear, np.diag(tokens))


def test_shared_expert_own_counts() -> None:
    topology = eplb.Topology(4, 1)
    part = eplb.level_shared_own(topology, 1, [30, 0, 10, 0], 100, batch_floor=0)
    assert part.sum() == 100 and (np.array([30, 0, 10, 0]) + part).max() == 35
    assert eplb.level_shared_own(topology, 1, [30, 0, 10, 0], 20).tolist() == [0, 20, 0, 0]
    with pytest.raises(eplb.InvalidError, match="price"):
        eplb.level_shared(topology, [0] * 4, [1] * 4, price=-1)
    with pytest.raises(eplb.InvalidError):
        eplb.level_shared_own(topology, 4, [0] * 4, 1)

"""Placement: its forms, its problems, its figures and its moves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eplb


def loads_of(slots: np.ndarray, load: np.ndarray, ranks: int) -> np.ndarray:
    """Rank loads of an equal split, by plain sums."""
    result = np.zeros((len(slots), ranks))
    for layer, row in enumerate(slots):
        count = np.bincount(row[row >= 0], minlength=load.shape[1])
        for slot, expert in enumerate(row):
            if expert >= 0:
                result[layer, slot // (len(row) // ranks)] += load[layer, expert] / count[expert]
    return result


@given(st.integers(1, 4), st.integers(1, 4), st.data())
def test_forms_agree(ranks: int, per_rank: int, data: st.DataObject) -> None:
    experts = data.draw(st.integers(1, 6))
    rows = st.lists(st.integers(-1, experts - 1), min_size=ranks * per_rank, max_size=ranks * per_rank)
    slots = np.array(data.draw(st.lists(rows, min_size=1, max_size=3)))
    placement = eplb.Placement(eplb.Topology(ranks, per_rank), slots, experts)
    np.testing.assert_array_equal(placement.physical_to_logical, slots)
    dense = placement.logical_to_physical()
    for layer, row in enumerate(slots):
        first = placement.replica_first[layer]
        for expert in range(experts):
            expected = np.flatnonzero(row == expert).tolist()
            assert placement.replica_slots[layer, first[expert] : first[expert + 1]].tolist() == expected
            assert dense[layer, expert].tolist() == expected + [-1] * (placement.max_replicas - len(expected))
            assert placement.replica_count[layer, expert] == len(expected)
    missing = {(p.layer, p.expert) for p in placement.problems() if p.kind == "expert-missing"}
    assert missing == {(i, e) for i, row in enumerate(slots) for e in range(experts) if e not in row}
    if missing:
        with pytest.raises(eplb.InvalidError):
            placement.check()


def test_initial_layout() -> None:
    placement = eplb.Placement.initial(eplb.Topology(4, 3), 2, 8)
    assert placement.physical_to_logical.tolist() == [[0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3]] * 2
    assert placement.logical_to_physical(width=4, dtype=np.int32).dtype == np.int32
    assert placement.problems() == []
    placement.check()
    with pytest.raises(eplb.InvalidError, match="width"):
        placement.logical_to_physical(width=1)
    with pytest.raises(TypeError):
        placement.logical_to_physical(dtype=np.float64)


def test_figures(load: np.ndarray) -> None:
    placement = eplb.Placement.initial(eplb.Topology(8, 5), 6, 32)
    expected = loads_of(placement.physical_to_logical, load, 8)
    np.testing.assert_allclose(placement.rank_load(load), expected)
    np.testing.assert_allclose(placement.imbalance(load), expected.max(axis=1) / expected.mean(axis=1))
    windows = np.stack([load, 2 * load])
    np.testing.assert_allclose(placement.rank_load(windows, window=1), 2 * expected)
    with pytest.raises(eplb.InvalidError):
        placement.rank_load(windows, window=2)
    with pytest.raises(eplb.InvalidError, match="5 layers of 32 experts: expected 6 of 32"):
        placement.rank_load(load[:5])
    with pytest.raises(eplb.InvalidError, match="shares has shape"):
        placement.imbalance(load, np.ones((6, 3)))


def test_broken_shares_are_refused(load: np.ndarray) -> None:
    plan = eplb.plan(load, num_ranks=8, num_slots=40, split="weighted")
    np.testing.assert_allclose(plan.placement.imbalance(load, plan.shares), plan.imbalance)
    for value, message in (
        (np.nan, "layer 3, slot 7: share nan"),
        (np.inf, "layer 3, slot 7: share inf"),
        (-0.25, "layer 3, slot 7: share -0.25"),
        (7.0, "layer 3, expert .*: shares sum to"),
    ):
        shares = plan.shares.copy()
        shares[3, 7] = value
        for figure in (plan.placement.imbalance, plan.placement.rank_load):
            with pytest.raises(eplb.InvalidError, match=message) as caught:
                figure(load, shares)
            assert caught.value.layer == 3
    with pytest.raises(eplb.InvalidError, match="shares sum to 0: expected 1"):
        plan.placement.imbalance(load, np.zeros((6, 40)))
    idle = np.zeros_like(load)  # an expert without tokens needs no shares
    assert (plan.placement.imbalance(idle, np.zeros((6, 40))) == 1).all()


def test_problems_of_a_broken_placement() -> None:
    topology = eplb.Topology(3, 2, dead=[2])
    placement = eplb.Placement(topology, [[0, 0, 1, -1, 1, -1]], 3)
    kinds = {problem.kind: problem for problem in placement.problems()}
    assert set(kinds) == {"expert-missing", "dead-slot", "duplicate", "empty-slot"}
    assert kinds["expert-missing"].expert == 2 and kinds["dead-slot"].slot == 4
    with pytest.raises(eplb.InvalidError, match="expert 2"):
        placement.check()


def test_moves() -> None:
    topology = eplb.Topology(4, 2, num_nodes=2)
    before = eplb.Placement(topology, [[0, 1, 2, 3, 4, 5, 6, 7]], 8)
    after = eplb.Placement(topology, [[1, 0, 2, 7, 4, 5, 6, 3]], 8)
    moves = before.moves_to(after)
    assert moves == eplb.Moves(slots=4, received=2, cross_node=2, max_received_per_rank=1, lost=0)
    assert before.moves_to(before).slots == 0
    with pytest.raises(eplb.InvalidError):
        before.moves_to(eplb.Placement.initial(topology, 2, 8))

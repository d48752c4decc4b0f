"""The frontier: rising moves, falling imbalance, and plans that keep its word."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import eplb


def test_points_are_reached(load: np.ndarray, rng: np.random.Generator) -> None:
    old = eplb.plan(load, num_ranks=8, num_slots=40)
    drifted = np.rint(load * np.exp(0.4 * rng.standard_normal(load.shape))).astype(np.int64)
    frontier = eplb.frontier(drifted, current=old)
    assert frontier.num_layers == 6
    np.testing.assert_allclose(frontier.within(0), old.placement.imbalance(drifted))
    for layer in range(6):
        moves, imbalance = frontier.moves(layer), frontier.imbalance(layer)
        assert moves[0] == 0 and (np.diff(moves) > 0).all() and (np.diff(imbalance) < 0).all()
        assert not moves.flags.writeable
    for most in (1, 3):
        plan = eplb.plan(drifted, old.topology, current=old, max_moves=most)
        assert plan.imbalance.mean() <= frontier.within(most).mean() * 1.05
    assert f"{frontier.within(0).max():.4f} kept" in repr(frontier)


def test_views_keep_it_alive(load: np.ndarray) -> None:
    start = eplb.Placement.initial(eplb.Topology(8, 5), 6, 32)
    moves = eplb.frontier(load, start.topology, current=start).moves(0)
    copy = moves.copy()
    gc.collect()
    churn = [eplb.frontier(load, current=start) for _ in range(3)]
    np.testing.assert_array_equal(moves, copy)
    assert churn


def test_refused(load: np.ndarray) -> None:
    start = eplb.Placement.initial(eplb.Topology(8, 5), 6, 32)
    with pytest.raises(eplb.InvalidError):
        eplb.frontier(load, num_ranks=8, current=None)
    with pytest.raises(eplb.UnsupportedError):
        eplb.frontier(load, current=start, policy="deepseek")
    with pytest.raises(eplb.InvalidError, match="layer 6: expected 0 to 5"):
        eplb.frontier(load, current=start).moves(6)

"""Load: counts in, counts out."""

from __future__ import annotations

import numpy as np
import pytest

import eplb


def test_shapes_and_sums(rng: np.random.Generator) -> None:
    counts = rng.integers(0, 1000, (5, 3, 7))
    load = eplb.Load(counts)
    assert load.shape == (5, 3, 7) and load.total() == counts.sum()
    np.testing.assert_array_equal(load.sum(), counts.sum(axis=0))
    np.testing.assert_array_equal(load.windows(), counts)
    assert eplb.Load(counts[0]).shape == (1, 3, 7) and eplb.Load(counts[0, 0]).shape == (1, 1, 7)
    assert repr(load) == f"Load(5 windows, 3 layers, 7 experts, {counts.sum()} tokens)"


def test_equal_however_stored(rng: np.random.Generator) -> None:
    counts = rng.integers(0, 1000, (3, 7))
    assert eplb.Load(counts) == eplb.Load(counts.astype(np.float64)) == eplb.Load(counts[None].astype(np.int32))
    assert eplb.Load(counts) != eplb.Load(counts + 1) and eplb.Load(counts) != counts.tolist()


def test_fractions_are_scaled() -> None:
    load = eplb.Load(np.array([[0.25, 0.5, 1.0]]))
    assert load.scale_log2 > 0
    np.testing.assert_array_equal(load.sum() / 2.0**load.scale_log2, [[0.25, 0.5, 1.0]])
    assert eplb.Load(np.array([[1.0, 2.0]])).scale_log2 == 0


def test_counts_changed_in_place_are_checked_again() -> None:
    counts = np.ones((2, 8), dtype=np.int64)
    load, kept = eplb.Load(counts), eplb.plan(np.ones((2, 8)), num_ranks=2)
    for value in (-5, 2**62):
        counts[1] = value
        with pytest.raises(eplb.InvalidError, match="changed after the load was made"):
            eplb.plan(load, num_ranks=2)
        with pytest.raises(eplb.InvalidError, match="changed after the load was made"):
            eplb.frontier(load, current=kept)
    sources = np.ones((2, 2, 8), dtype=np.int64)
    given = eplb.Load(sources)
    sources[0] = -1
    with pytest.raises(eplb.InvalidError, match="changed after the load was made"):
        eplb.plan(np.ones((2, 8)), num_ranks=2, sources=given)
    counts[1] = 7
    assert eplb.plan(load, num_ranks=2).imbalance.tolist() == [1, 1]


def test_counts_are_borrowed() -> None:
    """A write is seen through: proof that nothing was copied, whatever the strides."""
    for dtype in (np.int32, np.int64):
        counts = np.ones((2, 16), dtype=dtype)
        for given in (counts, counts[:, ::2], counts[:, ::-1], np.ones((8, 2), dtype=dtype).T):
            load = eplb.Load(given)
            given[1, 3] = 41
            assert load.sum()[1, 3] == 41 and load.total() == given.sum()
    floats = np.ones((2, 4))
    load = eplb.Load(floats)
    floats[0, 0] = 9
    assert load.total() == 8


def test_the_place_of_a_negative_count() -> None:
    counts = np.ones((2, 3, 4), dtype=np.int64)
    counts[1, 2, 3] = -9
    with pytest.raises(eplb.InvalidError, match="window 1, layer 2, expert 3") as caught:
        eplb.Load(counts)
    assert (caught.value.layer, caught.value.expert, caught.value.value) == (2, 3, -9)

"""Topology: sizes, nodes, health and speeds as the library holds them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eplb


def test_uniform() -> None:
    topology = eplb.Topology(8, 3, num_nodes=2)
    assert (topology.num_ranks, topology.num_nodes, topology.num_slots, topology.slots_per_rank) == (8, 2, 24, 3)
    assert topology.first_slot.tolist() == list(range(0, 25, 3))
    assert topology.slot_rank.tolist() == [slot // 3 for slot in range(24)]
    assert topology.rank_node.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert repr(topology) == "Topology(8 ranks, 2 nodes, 24 slots)"


def test_uneven_dead_and_slow() -> None:
    topology = eplb.Topology(3, rank_slots=[4, 0, 2], dead=[2], rank_speed=[1, 0.8, 0.5], rank_node=[1, 0, 1], num_nodes=2)
    assert topology.rank_speed.tolist() == [10, 8, 5]
    assert topology.slots_per_rank is None and topology.rank_node.tolist() == [1, 0, 1]
    assert (topology.num_live_ranks, topology.num_live_slots) == (2, 4)
    assert topology.rank_alive.tolist() == [1, 1, 0] and "1 dead" in repr(topology)
    revived = topology.with_dead([])
    assert revived.num_live_ranks == 3 and revived != topology
    assert revived.with_dead(np.array([2])) == topology and hash(revived.with_dead([2])) == hash(topology)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_ordinary_floats_are_speeds(dtype: Any, rng: np.random.Generator) -> None:
    def speeds(values: Any) -> list[int]:
        array = np.array(values, dtype=dtype)
        return [int(speed) for speed in eplb.Topology(len(array), 1, rank_speed=array).rank_speed]

    assert speeds([1, 1, 1 / 3, 1]) == [3, 3, 1, 3]
    assert speeds([0.8, 1.2]) == [2, 3] and speeds([200, 50]) == [4, 1] and speeds([1e-3, 2e-3]) == [1, 2]
    drawn = (rng.random(8) + 0.5).astype(dtype)
    got = np.array(speeds(drawn))
    assert 1 <= got.min() and got.max() <= 10**6
    np.testing.assert_allclose(got / got.max(), drawn.astype(float) / float(drawn.max()), atol=2e-6 if dtype != np.float16 else 1e-3)


def test_spread() -> None:
    assert np.diff(eplb.Topology.spread(4, 10).first_slot).tolist() == [3, 3, 2, 2]


def test_views_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        eplb.Topology(2, 2).slot_rank[0] = 1


@pytest.mark.parametrize(
    "arguments, options, message",
    [
        ((0, 1), {}, "0"),
        ((2,), {}, "either slots_per_rank or rank_slots"),
        ((2, 1), {"rank_slots": [1, 1]}, "either slots_per_rank or rank_slots"),
        ((2,), {"rank_slots": [1]}, r"rank_slots has shape \(1,\): expected \(2,\)"),
        ((2,), {"rank_slots": [1, -1]}, "-1"),
        ((2, 1), {"dead": [2]}, "dead rank 2: expected 0 to 1"),
        ((2, 1), {"num_nodes": 3}, "3"),
        ((2, 1), {"rank_speed": [1, 0]}, "0"),
        ((2, 1), {"rank_speed": [1, np.nan]}, "rank 1 is nan: expected a finite number above 0"),
        ((2, 1), {"rank_speed": [np.inf, 1]}, "rank 0 is inf: expected a finite number above 0"),
        ((2, 1), {"rank_speed": [1.0, -0.5]}, "rank 1 is -0.5: expected a finite number above 0"),
        ((2, 1), {"rank_speed": [1e9, 0.5]}, "from 0.5 to 1000000000.0: expected a ratio"),
        ((2, 1), {"rank_node": [0, 7]}, "7"),
        ((2, 2**31), {}, "2147483648"),
        ((10**9, 1), {}, "1000000000"),
    ],
)
def test_refused(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(eplb.InvalidError, match=message):
        eplb.Topology(*arguments, **options)

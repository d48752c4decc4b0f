"""plan(): every option reaches the planner, and what comes back is what it says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eplb
from eplb import document


def test_figures_follow_from_the_placement(load: np.ndarray) -> None:
    plan = eplb.plan(load, num_ranks=8, num_slots=40)
    plan.check()
    assert plan.placement.problems() == []
    np.testing.assert_allclose(plan.imbalance, plan.placement.imbalance(load))
    assert (plan.lower_bound <= plan.imbalance + 1e-12).all() and (plan.lower_bound >= 1).all()
    ranks = plan.rank_load()
    np.testing.assert_allclose(plan.imbalance, ranks.max(axis=1) / ranks.mean(axis=1))
    np.testing.assert_allclose(ranks.sum(axis=1), load.sum(axis=1))
    assert f"worst {plan.imbalance.max():.4f}" in repr(plan)
    start = eplb.Placement.initial(plan.topology, 6, 32)
    assert (plan.imbalance <= start.imbalance(load) + 1e-12).all()


def test_deepseek_is_the_drop_in(load: np.ndarray) -> None:
    plan = eplb.plan(load, num_ranks=8, num_slots=40, num_nodes=2, num_groups=4, policy="deepseek")
    held, table, count = eplb.rebalance_experts(load, 40, 4, 2, 8)
    np.testing.assert_array_equal(plan.physical_to_logical, held)
    np.testing.assert_array_equal(plan.replica_count, count)
    np.testing.assert_array_equal(np.sort(plan.logical_to_physical()), np.sort(table))


def test_shares_sum_to_one(load: np.ndarray) -> None:
    for split in ("equal", "weighted", "batch"):
        plan = eplb.plan(load, num_ranks=8, num_slots=40, split=split)
        assert plan.split == split
        for layer in range(6):
            sums = np.bincount(plan.physical_to_logical[layer], weights=plan.shares[layer], minlength=32)
            np.testing.assert_allclose(sums, 1)


def test_threads_do_not_change_the_answer(load: np.ndarray) -> None:
    plans = [eplb.plan(load, num_ranks=8, num_slots=40, threads=threads) for threads in (1, 2, 5)]
    assert len({plan.hash for plan in plans}) == 1 and plans[0] == plans[1] == plans[2]
    assert plans[0] != eplb.plan(load, num_ranks=8, num_slots=48) and len(set(plans)) == 1


def test_current_bounds_the_moves(load: np.ndarray, rng: np.random.Generator) -> None:
    old = eplb.plan(load, num_ranks=8, num_slots=40)
    drifted = np.rint(load * np.exp(0.3 * rng.standard_normal(load.shape))).astype(np.int64)
    for current in (old, old.placement, old.physical_to_logical, old.physical_to_logical.tolist()):
        plan = eplb.plan(drifted, old.topology, current=current, max_moves=2)
        assert plan.has_current and plan.moves == old.placement.moves_to(plan.placement)
        assert plan.moves.received <= 2 * 6 and "received" in repr(plan)
    assert eplb.plan(drifted, old.topology, current=old, max_moves_total=3).moves.received <= 3
    assert not old.has_current and old.moves.slots == 0
    kept = eplb.plan(drifted, old.topology, current=old, max_moves_total=0)
    assert kept.placement == old.placement


NODES: dict[str, Any] = {"num_nodes": 2, "num_groups": 4}
WINDOWS: dict[str, Any] = {"policy": "windows"}


@pytest.mark.parametrize(
    "keyword, value, other, base",
    [
        ("policy", "auto", "deepseek", {}),
        ("split", "equal", "weighted", {}),
        ("num_groups", 1, 4, {"num_nodes": 2}),
        ("spill", 0, 2, NODES),
        ("cost", "tokens", "activated", {}),
        ("tile", 128, 100_000, {"cost": "tiles"}),
        ("work_limit", 0, 1, {"policy": "equal"}),
        ("time_budget", 0.0, 1e-6, WINDOWS),
        ("target", 0.0, 1.5, {"policy": "equal", "current": np.arange(240).reshape(6, 40) % 32}),
        ("max_moves", None, 1, {"current": np.arange(240).reshape(6, 40) % 32}),
        ("max_moves_total", None, 1, {"current": np.arange(240).reshape(6, 40) % 32}),
        ("dead", (), (1,), {"num_slots": 48}),
        ("rank_speed", None, [1, 2] * 4, {}),
    ],
)
def test_every_keyword_has_an_effect(keyword: str, value: Any, other: Any, base: Any, rng: np.random.Generator) -> None:
    load = np.rint(1e5 * np.exp(rng.standard_normal((8, 6, 32)))).astype(np.int64)
    options = {"num_ranks": 8, "num_slots": 40, **base}
    plans = [eplb.plan(load, **{**options, keyword: choice}) for choice in (value, other)]
    assert plans[0].hash != plans[1].hash
    assert eplb.plan(load, **options).hash == plans[0].hash, "the first value is not the default"


def test_sources_have_an_effect(load: np.ndarray, rng: np.random.Generator) -> None:
    one_sided = np.zeros((8, 6, 32), dtype=np.int64)
    one_sided[:4, :, :16] = one_sided[4:, :, 16:] = 100
    options: dict[str, Any] = {"num_ranks": 8, "num_slots": 40, **NODES, "spill": 3}
    plans = [eplb.plan(load, **options, sources=sources) for sources in (one_sided, one_sided[::-1])]
    assert plans[0].hash != plans[1].hash


def test_sources_without_spill_choose_among_like_nodes(load: np.ndarray) -> None:
    one_node = np.zeros((8, 6, 32), dtype=np.int64)
    one_node[:4] = 100
    options: dict[str, Any] = {"num_ranks": 8, "num_slots": 40, **NODES}
    even, given = eplb.plan(load, **options), eplb.plan(load, **options, sources=one_node)
    told = given.placement.cross_node_tokens(load, given.shares, one_node)
    assert given.cross_node_tokens().tolist() == told.tolist()
    assert (told <= even.placement.cross_node_tokens(load, even.shares, one_node)).all()
    assert given.imbalance.tolist() == pytest.approx(even.imbalance.tolist(), rel=1e-12)  # sums in another order
    there = eplb.plan(load, **options, sources=one_node[::-1])
    assert there.hash != given.hash and there.cross_node_tokens().tolist() == told.tolist()
    published = [eplb.plan(load, **options, policy="deepseek", sources=s).hash for s in (None, one_node, one_node[::-1])]
    assert len(set(published)) == 1
    with pytest.raises(eplb.InvalidError, match="several nodes"):
        eplb.plan(load, num_ranks=8, num_slots=40, sources=one_node)
    with pytest.raises(eplb.InvalidError, match=r"shape \[7, 6, 32\]: expected \[8, 6, 32\]"):
        eplb.plan(load, **options, sources=one_node[:7])


def test_spilled_replicas_are_told(load: np.ndarray) -> None:
    plan = eplb.plan(load, num_ranks=8, num_slots=40, spill=2, **NODES)
    assert 0 < plan.spilled <= 12 and plan.to_dict()["spilled"] == plan.spilled
    assert "spilled" not in eplb.plan(load, num_ranks=8, num_slots=40, **NODES).to_dict()


def test_rank_loads_are_by_shares(load: np.ndarray) -> None:
    plan = eplb.plan(load, num_ranks=8, num_slots=40, split="weighted")
    ranks = plan.rank_load()
    expected = np.zeros((6, 8))
    for layer, row in enumerate(plan.physical_to_logical):
        np.add.at(expected[layer], np.arange(40) // 5, load[layer, row] * plan.shares[layer])
    np.testing.assert_allclose(ranks, expected)
    assert np.abs(ranks - plan.placement.rank_load(load)).max() > 1


def test_the_ranks_of_current_are_the_default(load: np.ndarray) -> None:
    old = eplb.plan(load, num_ranks=8, num_slots=48, num_nodes=2, dead=[1])
    assert eplb.plan(load, current=old).topology == old.topology
    shrunk = eplb.plan(load, current=old.placement, dead=[6])
    assert shrunk.topology == old.topology.with_dead([1, 6])
    assert eplb.plan(load, num_ranks=4, current=old.physical_to_logical[:, :32]).topology.num_ranks == 4
    with pytest.raises(eplb.InvalidError, match="give a topology"):
        eplb.plan(load, current=old.physical_to_logical)


def test_a_plan_stands_for_its_placement(load: np.ndarray) -> None:
    """Wherever a placement is wanted, a plan and a saved plan will do, with the same answer."""
    plan = eplb.plan(load, num_ranks=8, num_slots=40, split="weighted")
    saved = document.read(plan.to_dict())
    for value in (plan, saved, plan.placement):
        assert eplb.Resplit(value, 1).solve(load[1]).max_load == eplb.Resplit(plan.placement, 1).solve(load[1]).max_load
        assert (eplb.resplit(load, value).quota == eplb.resplit(load, plan.placement).quota).all()
        assert (eplb.assign_decode(load, value)[0] == eplb.assign_decode(load, plan.placement)[0]).all()
        assert (eplb.repeat_table(value, plan.shares, 8).table == eplb.repeat_table(plan.placement, plan.shares, 8).table).all()
        assert (eplb.sglang_static(value) == eplb.sglang_static(plan.placement)).all()
        assert plan.moves_to(value).slots == plan.placement.moves_to(value).slots == 0
        eplb.Router(plan.topology, 6, 32).update(value)
    calls: list[Any] = [eplb.Resplit, eplb.sglang_static, plan.moves_to, eplb.Router(plan.topology, 6, 32).update]
    for call in calls:
        with pytest.raises(TypeError, match="expected a Placement, Plan or SavedPlan"):
            call(load)


def test_ranks_by_keyword(load: np.ndarray) -> None:
    plan = eplb.plan(load, num_ranks=9, num_slots=41, num_nodes=3, dead=[4], rank_speed=[1.0] * 8 + [0.5])
    topology = plan.topology
    assert np.diff(topology.first_slot).tolist() == [5] * 5 + [4] * 4
    assert topology.num_live_ranks == 8 and topology.rank_speed.tolist() == [2] * 8 + [1] and topology.num_nodes == 3
    assert (plan.physical_to_logical[:, 20:25] == -1).all()
    uneven = eplb.plan(load, rank_slots=[10] * 3 + [6])
    assert np.diff(uneven.topology.first_slot).tolist() == [10, 10, 10, 6]
    assert eplb.plan(load, num_ranks=8).topology.num_slots == 32


def test_progress_and_cancelling(load: np.ndarray) -> None:
    seen: list[tuple[int, int]] = []
    eplb.plan(load, num_ranks=8, num_slots=40, threads=3, progress=lambda done, total: seen.append((done, total)))
    assert seen and seen == sorted(seen) and seen[-1][0] == seen[-1][1]
    with pytest.raises(eplb.CancelledError):
        eplb.plan(load, num_ranks=8, num_slots=40, progress=lambda done, total: False)

    def broken(done: int, total: int) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        eplb.plan(load, num_ranks=8, num_slots=40, threads=2, progress=broken)


def test_policies_all_plan(load: np.ndarray) -> None:
    names = eplb.policies()
    assert "auto" in names and all(names.values())
    for name in names:
        planned = 0
        for split in ("equal", "weighted", "batch"):
            try:
                plan = eplb.plan(load, num_ranks=8, num_slots=40, policy=name, split=split)
            except eplb.UnsupportedError as refusal:
                assert name in str(refusal)
                continue
            assert plan.policy == name and plan.reason and plan.seconds > 0
            planned += 1
        assert planned, name


def test_cost_reaches_the_planner(load: np.ndarray) -> None:
    for cost in ("tiles", "activated", {"tokens": 1, "activated": 300}):
        eplb.plan(load, num_ranks=8, num_slots=40, cost=cost, tile=64).check()
        with pytest.raises(eplb.UnsupportedError):
            eplb.plan(load, num_ranks=8, num_slots=40, cost=cost, policy="deepseek")


def test_groups_stay_on_their_node(load: np.ndarray) -> None:
    plan = eplb.plan(load, num_ranks=8, num_slots=40, num_nodes=2, num_groups=4)
    for layer in range(6):
        for group in range(4):
            slots = np.flatnonzero(plan.physical_to_logical[layer] // 8 == group)
            assert len(set(plan.topology.rank_node[plan.topology.slot_rank[slots]])) == 1
    assert plan.num_groups == 4 and plan.spilled == 0


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({}, eplb.InvalidError, "give a topology"),
        ({"num_ranks": 8, "num_slots": 16}, eplb.InfeasibleError, "16"),
        ({"num_ranks": 8, "policy": "best"}, eplb.InvalidError, "best"),
        ({"num_ranks": 8, "policy": "auto\0x"}, eplb.InvalidError, "expected a name without NUL"),
        ({"num_ranks": 8, "policy": None}, TypeError, "policy is a NoneType"),
        ({"num_ranks": 8, "split": []}, TypeError, "split is a list"),
        ({"num_ranks": 8, "split": "half"}, eplb.InvalidError, "'half': expected equal"),
        ({"num_ranks": 8, "cost": "time"}, eplb.InvalidError, "'time': expected tokens"),
        ({"num_ranks": 8, "cost": {"tokens": -1}}, eplb.InvalidError, "-1"),
        ({"num_ranks": 8, "tile": 0}, eplb.InvalidError, "0"),
        ({"num_ranks": 8, "threads": -1}, eplb.InvalidError, "threads is -1"),
        ({"num_ranks": 8, "num_groups": 5}, eplb.EplbError, "5"),
        ({"num_ranks": 8, "target": -1.0}, eplb.InvalidError, "target"),
        ({"num_ranks": 8, "time_budget": float("nan")}, eplb.InvalidError, "nan"),
        ({"num_ranks": 8, "max_moves": -2}, eplb.InvalidError, "max_moves is -2"),
        ({"num_ranks": 8, "max_moves_total": 2}, eplb.InvalidError, "max_moves_total needs current"),
        ({"num_ranks": 8, "max_moves": 2}, eplb.InvalidError, "max_moves needs current"),
        ({"num_ranks": 8, "current": np.zeros((6, 3), int)}, eplb.InvalidError, "shape"),
        ({"num_ranks": 8, "sources": np.ones((3, 6, 32))}, eplb.InvalidError, "sources|source"),
        ({"topology": eplb.Topology(8, 4), "num_ranks": 8}, eplb.InvalidError, "either a topology"),
        ({"topology": eplb.Topology(8, 4), "dead": [1]}, eplb.InvalidError, "either a topology"),
        ({"rank_slots": [40], "num_slots": 40}, eplb.InvalidError, "either num_slots"),
        ({"num_ranks": 0, "num_slots": 40}, eplb.InvalidError, "0"),
        ({"num_ranks": 8, "policy": "deepseek", "dead": [1], "num_slots": 40, "num_nodes": 2, "num_groups": 2},
         eplb.UnsupportedError, "node"),
    ],
)  # fmt: skip
def test_refused(load: np.ndarray, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        eplb.plan(load, **options)

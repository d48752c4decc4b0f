"""Real-time planning: tokens are kept, ranks are level, replicas are where they may be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eplb


@given(st.integers(1, 5), st.integers(1, 3), st.data())
def test_tokens_and_ranks(ranks: int, spare: int, data: st.DataObject) -> None:
    experts = data.draw(st.integers(1, 12))
    tokens = np.array(data.draw(st.lists(st.integers(0, 100), min_size=experts, max_size=experts)))
    home = np.array(data.draw(st.lists(st.integers(0, ranks - 1), min_size=experts, max_size=experts)))
    plan = eplb.Realtime(experts, ranks, spare, home).plan_batch(tokens, 1.0)
    used = plan.replica_expert >= 0
    assert used.sum() == plan.num_replicas and (plan.replica_tokens[~used] == 0).all()
    served = np.bincount(plan.replica_expert[used], weights=plan.replica_tokens[used], minlength=experts)
    np.testing.assert_array_equal(plan.home_tokens + served, tokens)
    load = np.bincount(home, weights=plan.home_tokens, minlength=ranks) + plan.replica_tokens.sum(axis=1)
    assert load.max() == plan.max_rank_tokens and plan.total_tokens == tokens.sum()
    assert load.max() <= np.bincount(home, weights=tokens, minlength=ranks).max()
    for rank in range(ranks):
        mine = plan.replica_expert[rank][used[rank]]
        assert len(set(mine)) == len(mine) and (home[mine] != rank).all()


def test_target_is_reached(rng: np.random.Generator) -> None:
    tokens = np.rint(200 * np.exp(rng.standard_normal(256))).astype(np.int32)
    realtime = eplb.Realtime(256, 32)
    plan = realtime.plan_batch(tokens, target=1.005)
    assert plan.max_rank_tokens <= 1.005 * tokens.sum() / 32 + 1
    loose = realtime.plan_batch(tokens, target=1.2)
    assert loose.num_replicas < plan.num_replicas and repr(realtime).startswith("Realtime(256 experts")
    torch = pytest.importorskip("torch", exc_type=ImportError)
    assert torch.equal(realtime.plan_batch(torch.from_numpy(tokens)).home_tokens, torch.from_numpy(plan.home_tokens))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: eplb.Realtime(0, 1), "0"),
        (lambda: eplb.Realtime(4, 2, 0), "0"),
        (lambda: eplb.Realtime(4, 2, 1, [0, 1, 2, 0]), "2"),
        (lambda: eplb.Realtime(4, 2, 1, [0, 1]), "home_rank has shape"),
        (lambda: eplb.Realtime(4, 2).plan_batch([1, 2, 3]), "tokens has shape"),
        (lambda: eplb.Realtime(4, 2).plan_batch([1, 2, 3, -1]), "-1"),
        (lambda: eplb.Realtime(4, 2).plan_batch([1, 2, 3, 2**31]), "2147483648"),
        (lambda: eplb.Realtime(4, 2).plan_batch([1, 2, 3, 4], target=0.5), "0.5"),
        (lambda: eplb.Realtime(4, 2).plan_batch([1, 2, 3, 4], target=float("nan")), "nan"),
    ],
)
def test_refused(call: Any, message: str) -> None:
    with pytest.raises(eplb.InvalidError, match=message):
        call()

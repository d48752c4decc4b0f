"""Repeat tables and SGLang's static table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eplb


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("width", [1, 4, 16, 64])
def test_repeat_table(load: np.ndarray, dtype: Any, width: int) -> None:
    plan = eplb.plan(load, num_ranks=8, num_slots=40, split="weighted")
    table, counts, worst = eplb.repeat_table(plan.placement, plan.shares, width, dtype)
    assert table.dtype == counts.dtype == dtype and table.shape == (6, 32, width)
    error = 0.0
    for layer in range(6):
        for expert in range(32):
            listed = table[layer, expert, : counts[layer, expert]]
            assert (plan.physical_to_logical[layer, listed] == expert).all()
            assert (table[layer, expert, counts[layer, expert] :] == -1).all()
            served = np.bincount(listed, minlength=40) / len(listed)
            mine = plan.physical_to_logical[layer] == expert
            error = max(error, float(np.abs(served - plan.shares[layer])[mine].max()))
    assert error == pytest.approx(worst, abs=1e-8)  # shares are weighed in whole numbers
    assert width < 64 or worst < 1 / 64


def test_refused(load: np.ndarray) -> None:
    plan = eplb.plan(load, num_ranks=8, num_slots=40)
    for width in (0, -1, 2**20):
        with pytest.raises(eplb.InvalidError, match="width|entries"):
            eplb.repeat_table(plan.placement, plan.shares, width)
    with pytest.raises(eplb.InvalidError, match="shares is None"):
        eplb.repeat_table(plan.placement, None, 4)
    with pytest.raises(eplb.InvalidError, match="layer 0"):
        eplb.repeat_table(plan.placement, np.full((6, 40), np.nan), 4)
    with pytest.raises(TypeError, match="int16"):
        eplb.repeat_table(plan.placement, plan.shares, 4, np.int16)


def test_sglang_static_takes_its_own_replica(load: np.ndarray) -> None:
    plan = eplb.plan(load, num_ranks=8, num_slots=40, num_nodes=2)
    own = eplb.sglang_static(plan.placement)
    assert own.shape == (8, 6, 32)
    for rank in range(8):
        for layer in range(6):
            assert (plan.physical_to_logical[layer, own[rank, layer]] == np.arange(32)).all()
            for slot in np.flatnonzero(plan.topology.slot_rank == rank):
                held = own[rank, layer, plan.physical_to_logical[layer, slot]]
                assert plan.topology.slot_rank[held] == rank

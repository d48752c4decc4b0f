"""The drop-in against two restatements, and what comes out for what goes in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import restated
from hypothesis import given
from hypothesis import strategies as st

import eplb

SHAPES = [(32, 40, 4, 2, 8), (32, 36, 3, 2, 4), (24, 24, 8, 4, 8), (12, 16, 4, 2, 8), (16, 16, 1, 1, 16), (6, 6, 1, 1, 1)]


def draw(rng: np.random.Generator, experts: int, layers: int = 3) -> Any:
    """Loads in which weights per replica differ, so that nothing depends on how a sort treats ties."""
    return rng.permutation(layers * experts * 7)[: layers * experts].reshape(layers, experts) * 1009 + 10007


@pytest.mark.parametrize("shape", SHAPES)
def test_against_numpy(shape: tuple[int, int, int, int, int], rng: np.random.Generator) -> None:
    experts, slots, groups, nodes, ranks = shape
    for _ in range(5):
        load = draw(rng, experts)
        expected = restated.rebalance_experts(load, slots, groups, nodes, ranks)
        for mine, theirs in zip(eplb.rebalance_experts(load, slots, groups, nodes, ranks), expected):
            np.testing.assert_array_equal(mine, theirs)


@given(st.data())
def test_primitives_against_numpy(data: st.DataObject) -> None:
    packs, room = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    weights = st.lists(st.integers(0, 50), min_size=packs * room, max_size=packs * room)
    weight = np.array(data.draw(st.lists(weights, min_size=1, max_size=3)), dtype=np.float32)
    for mine, theirs in zip(eplb.balanced_packing(weight, packs), restated.balanced_packing(weight, packs)):
        np.testing.assert_array_equal(mine, theirs)
    slots = weight.shape[1] + data.draw(st.integers(0, 8))
    for mine, theirs in zip(eplb.replicate_experts(weight, slots), restated.replicate_experts(weight, slots)):
        np.testing.assert_array_equal(mine, theirs)


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.data())
def test_ties_and_zeros_against_numpy(nodes: int, per_node: int, size: int, data: st.DataObject) -> None:
    """Small whole loads, so that sums are exact in any order, with as many ties and zeros as it takes."""
    groups = nodes * data.draw(st.integers(1, 3)) + data.draw(st.sampled_from([0, 0, 1]))
    ranks, experts = nodes * per_node, groups * size
    slots = (-(-experts // ranks) + data.draw(st.integers(0, 2))) * ranks
    row = st.lists(st.integers(0, 5), min_size=experts, max_size=experts)
    load = np.array(data.draw(st.lists(row, min_size=1, max_size=2)))
    expected = restated.rebalance_experts(load, slots, groups, nodes, ranks)
    for mine, theirs in zip(eplb.rebalance_experts(load, slots, groups, nodes, ranks), expected):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("shape", SHAPES)
def test_against_torch(shape: tuple[int, int, int, int, int], rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch", exc_type=ImportError)
    import restatement

    experts, slots, groups, nodes, ranks = shape
    for _ in range(5):
        load = torch.from_numpy(draw(rng, experts))
        expected = restatement.rebalance_experts(load, slots, groups, nodes, ranks)
        for mine, theirs in zip(eplb.rebalance_experts(load, slots, groups, nodes, ranks), expected):
            assert mine.dtype == theirs.dtype and torch.equal(mine, theirs)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "uint8", "float64", "float32", "float16", "bfloat16"])
def test_torch_in_torch_out(dtype: str) -> None:
    torch = pytest.importorskip("torch", exc_type=ImportError)
    load = torch.arange(1, 25).reshape(2, 12).to(getattr(torch, dtype))
    expected = restated.rebalance_experts(np.arange(1, 25).reshape(2, 12), 16, 4, 2, 8)
    for mine, theirs in zip(eplb.rebalance_experts(load, 16, 4, 2, 8), expected):
        assert isinstance(mine, torch.Tensor) and mine.dtype == torch.int64 and mine.device == load.device
        assert mine.is_contiguous() and mine.numpy().tolist() == theirs.tolist()
    for mine in (*eplb.balanced_packing(load, 4), *eplb.replicate_experts(load, 16)):
        assert isinstance(mine, torch.Tensor) and mine.dtype == torch.int64


def test_torch_views_and_gradients() -> None:
    torch = pytest.importorskip("torch", exc_type=ImportError)
    base = torch.arange(1.0, 49.0).reshape(4, 12)
    expected = eplb.rebalance_experts(base[::2].clone(), 16, 4, 2, 8)
    for load in (base[::2], base[::2].clone().requires_grad_(), base.T.contiguous().T[::2]):
        for mine, theirs in zip(eplb.rebalance_experts(load, 16, 4, 2, 8), expected):
            assert torch.equal(mine, theirs) and not mine.requires_grad


@pytest.mark.parametrize("dtype", ["i1", "u2", "<i4", ">i4", "i8", ">i8", "u8", "f2", "<f4", ">f4", "f8", "g", "?"])
def test_numpy_in_numpy_out(dtype: str) -> None:
    load = np.arange(24).reshape(2, 12).astype(dtype)
    expected = restated.rebalance_experts(load.astype(np.float32), 16, 4, 2, 8)
    answers = eplb.rebalance_experts(load, 16, 4, 2, 8)
    assert all(type(mine) is np.ndarray and mine.dtype == np.int64 and mine.flags.owndata for mine in answers)
    np.testing.assert_array_equal(answers[2], expected[2])
    np.testing.assert_array_equal(answers[0], expected[0])


def test_padding_is_minus_one() -> None:
    held, table, count = eplb.rebalance_experts(np.array([[100, 1, 1, 1]]), 8, 1, 1, 4)
    assert count.tolist() == [[5, 1, 1, 1]] and table.shape == (1, 4, 5)
    assert (table[0, 1:, 1:] == -1).all() and sorted(table[0, 0]) == np.flatnonzero(held[0] == 0).tolist()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((np.ones((1, 8)), 7, 1, 1, 1), "number of replicas is 7"),
        ((np.ones((1, 8)), 10, 1, 1, 4), "10 replicas do not divide by 4 ranks"),
        ((np.ones((1, 8)), 8, 3, 1, 4), "8 logical experts do not divide by 3 groups"),
        ((np.ones((1, 8)), 8, 1, 1, 0), "number of ranks is 0"),
        ((np.ones((1, 8)), -8, 1, 1, 1), "num_replicas is -8"),
        ((np.ones((1, 8)), 2**40, 1, 1, 1), "num_replicas is 1099511627776"),
        ((np.ones((1, 8)), 8, 1, 2**70, 1), "num_nodes is"),
        ((np.ones(8), 8, 1, 1, 1), r"shape \(8,\): expected 2 dimensions"),
        ((np.ones((0, 8)), 8, 1, 1, 1), "number of layers is 0"),
        ((np.ones((1, 0)), 8, 1, 1, 1), "number of logical experts is 0"),
        ((-np.ones((1, 8)), 8, 1, 1, 1), "row 0, item 0 has weight -1"),
        ((np.full((1, 8), np.nan), 8, 1, 1, 1), "weight nan"),
        ((np.full((1, 8), 1e300), 8, 1, 1, 1), "weight inf"),
    ],
)
def test_refusals(arguments: Any, message: str) -> None:
    with pytest.raises(eplb.InvalidError, match=message):
        eplb.rebalance_experts(*arguments)
    with pytest.raises(ValueError):
        eplb.rebalance_experts(*arguments)


def test_the_place_of_a_wrong_weight() -> None:
    load = np.ones((3, 8))
    load[2, 5] = -4
    with pytest.raises(eplb.InvalidError) as caught:
        eplb.rebalance_experts(load, 8, 1, 1, 1)
    assert (caught.value.layer, caught.value.expert, caught.value.slot) == (2, 5, None)


def test_sizes_must_be_integers() -> None:
    with pytest.raises(TypeError):
        eplb.rebalance_experts(np.ones((1, 8)), 8.0, 1, 1, 1)  # type: ignore[arg-type]
    assert eplb.rebalance_experts(np.ones((1, 8)), np.int64(8), np.uint8(1), True, 1)[0].shape == (1, 8)

"""Torture of array arguments: whatever is handed in is either understood exactly or refused with a text."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eplb

COUNTS = np.arange(1, 49, dtype=np.int64).reshape(4, 12)


def planned(counts: Any) -> int:
    return eplb.plan(counts, num_ranks=4, num_slots=16).hash


def unaligned(counts: Any) -> Any:
    raw = np.zeros(counts.nbytes + 1, dtype=np.uint8)
    view = raw[1:].view(counts.dtype).reshape(counts.shape)
    view[...] = counts
    assert not view.flags.aligned
    return view


@pytest.mark.parametrize("value", [-(2**31) - 1, 2**31, 2**32])
def test_integers_do_not_wrap(value: int) -> None:
    with pytest.raises(eplb.InvalidError, match=f"from .*{value}|to {value}"):
        eplb.Placement(eplb.Topology(1, 2), np.array([[0, value]]), 1)


class Subclass(np.ndarray):
    pass


READ_ONLY = COUNTS.copy()
READ_ONLY.setflags(write=False)
PADDED = np.zeros((4, 12), dtype=[("pad", "i1"), ("count", "i8")])
PADDED["count"] = COUNTS

SAME = {
    "int64": COUNTS,
    "int32": COUNTS.astype(np.int32),
    "uint8": COUNTS.astype(np.uint8),
    "uint32": COUNTS.astype(np.uint32),
    "uint64": COUNTS.astype(np.uint64),
    "float64": COUNTS.astype(np.float64),
    "float16": COUNTS.astype(np.float16),
    "long double": COUNTS.astype(np.longdouble),
    "big endian": COUNTS.astype(">i8"),
    "big endian float": COUNTS.astype(">f4"),
    "Fortran order": np.asfortranarray(COUNTS),
    "negative strides": COUNTS[::-1, ::-1].copy()[::-1, ::-1],
    "every other": np.repeat(np.repeat(COUNTS, 2, axis=0), 3, axis=1)[::2, ::3],
    "read-only": READ_ONLY,
    "unaligned": unaligned(COUNTS),
    "field of records": PADDED["count"],
    "subclass": COUNTS.view(Subclass),
    "matrix": COUNTS.view(np.matrix),
    "unmasked": np.ma.array(COUNTS),
    "memory map": np.memmap.__new__(np.memmap, "/dev/zero", np.int64, "c", 0, (4, 12)) + COUNTS,
    "list": COUNTS.tolist(),
    "tuple of arrays": tuple(array.array("q", row) for row in COUNTS.tolist()),
    "buffer": COUNTS.data,
    "one window": COUNTS[None],
    "Load": eplb.Load(COUNTS),
}


@pytest.mark.parametrize("name", SAME)
def test_same_counts_same_plan(name: str) -> None:
    assert planned(SAME[name]) == planned(COUNTS)


@pytest.mark.parametrize("strides", ["rows", "columns", "both", "windows"])
def test_broadcasts(strides: str) -> None:
    full = {
        "rows": np.broadcast_to(COUNTS[0], (4, 12)),
        "columns": np.broadcast_to(COUNTS[:, :1], (4, 12)),
        "both": np.broadcast_to(np.int64(7), (4, 12)),
        "windows": np.broadcast_to(COUNTS, (3, 4, 12)),
    }[strides]
    np.testing.assert_array_equal(eplb.Load(full).sum(), full.copy().reshape(-1, 4, 12).sum(axis=0))


def test_integers_are_borrowed_and_kept_alive() -> None:
    counts = COUNTS[::2, ::-1]
    load = eplb.Load(counts)
    assert load._counts.base is not None and np.shares_memory(load._counts, COUNTS)
    temporary = eplb.Load(COUNTS.copy())
    np.testing.assert_array_equal(temporary.windows()[0], COUNTS)


def test_tensors_are_borrowed() -> None:
    torch = pytest.importorskip("torch", exc_type=ImportError)
    tensor = torch.from_numpy(COUNTS.copy())
    load = eplb.Load(tensor[:, 2:])
    assert np.shares_memory(load._counts, tensor.numpy())
    assert load == eplb.Load(COUNTS[:, 2:])
    assert planned(torch.from_numpy(COUNTS)) == planned(COUNTS)
    assert planned(torch.from_numpy(COUNTS).to(torch.bfloat16)) == planned(COUNTS)


def test_dlpack_without_numpy_or_torch() -> None:
    class Producer:
        """Has DLPack alone."""

        def __init__(self, values: Any) -> None:
            self.values = values

        def __dlpack__(self, **options: Any) -> Any:
            return self.values.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.values.__dlpack_device__()

    values = COUNTS.copy()
    load = eplb.Load(Producer(values))
    assert np.shares_memory(load._counts, values) and planned(Producer(values)) == planned(COUNTS)


@pytest.mark.parametrize(
    "counts, error, message",
    [
        (np.array(5), eplb.InvalidError, r"shape \(\): expected"),
        (np.ones((2, 2, 2, 2)), eplb.InvalidError, r"shape \(2, 2, 2, 2\)"),
        (np.ones((0, 4)), eplb.InvalidError, "0"),
        (np.ones((4, 0)), eplb.InvalidError, "0"),
        ([], eplb.InvalidError, "0"),
        ([[1, 2], [3]], ValueError, "inhomogeneous"),
        (np.array([["1"]]), TypeError, "dtype <U1"),
        (np.array([[None]]), TypeError, "dtype object"),
        (np.array([[1j]]), TypeError, "dtype complex128"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), TypeError, "dtype datetime64"),
        (None, TypeError, "dtype object"),
        ("load.npy", TypeError, "dtype <U8"),
        (np.array([[1, -1]]), eplb.InvalidError, "-1"),
        (np.array([[1, np.nan]]), eplb.InvalidError, "nan"),
        (np.array([[1, np.inf]]), eplb.InvalidError, "inf"),
        (np.array([[2**63]], dtype=np.uint64), eplb.LoadOverflowError, "exceeds int64"),
        (np.array([[2**62, 2**62]]), eplb.LoadOverflowError, "layer 0"),
        (np.ma.array([[1, 2]], mask=[[0, 1]]), eplb.InvalidError, "masked"),
    ],
)
def test_refused(counts: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        eplb.Load(counts)


@pytest.mark.parametrize("kind", ["sparse", "meta", "complex"])
def test_odd_tensors_are_refused(kind: str) -> None:
    torch = pytest.importorskip("torch", exc_type=ImportError)
    tensor = {
        "sparse": lambda: torch.eye(3).to_sparse(),
        "meta": lambda: torch.ones(3, 3, device="meta"),
        "complex": lambda: torch.ones(3, 3, dtype=torch.complex64),
    }[kind]()
    with pytest.raises((TypeError, ValueError, RuntimeError, NotImplementedError)):
        eplb.Load(tensor)


def test_huge_strides_and_sizes() -> None:
    spread = np.lib.stride_tricks.as_strided(np.zeros(1, np.int64), (65536, 1), (0, 8))
    assert eplb.Load(spread).shape == (1, 65536, 1)
    with pytest.raises(eplb.InvalidError, match="65537"):
        eplb.Load(np.lib.stride_tricks.as_strided(np.zeros(1, np.int64), (65537, 1), (0, 8)))
    with pytest.raises(eplb.InvalidError):
        eplb.Load(np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), (1, 2**33), (0, 0)).view(np.int8)[:, :0])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64, np.uint64, ">i4"])
def test_ids_of_any_integer_dtype(dtype: Any) -> None:
    topology = eplb.Topology(2, 3)
    slots = np.array([[0, 1, 2, 3, 0, 1]])
    assert eplb.Placement(topology, slots.astype(dtype), 4) == eplb.Placement(topology, slots, 4)


def test_ids_that_do_not_fit() -> None:
    topology = eplb.Topology(1, 2)
    with pytest.raises(eplb.InvalidError, match="4294967296"):
        eplb.Placement(topology, [[0, 2**32]], 1)  # would wrap to 0
    with pytest.raises(TypeError, match="float64"):
        eplb.Placement(topology, [[0.0, 1.0]], 2)


@given(st.lists(st.integers(0, 3), min_size=2, max_size=3), st.data())
def test_any_view_reads_as_its_copy(shape: list[int], data: st.DataObject) -> None:
    """Random slices, transposes and byte orders of a block read as NumPy itself reads them."""
    block = np.arange(7 * 6 * 5, dtype=data.draw(st.sampled_from(["i4", "i8", ">i8", "f4", "f8", "u2"])))
    view = block.reshape(7, 6, 5).transpose(data.draw(st.permutations([0, 1, 2])))
    for axis in range(3):
        step = data.draw(st.sampled_from([-2, -1, 1, 2]))
        view = np.moveaxis(np.moveaxis(view, axis, 0)[::step], 0, axis)
    np.testing.assert_array_equal(eplb.Load(view).windows(), view.astype(np.int64))


class _Number:
    """What counts as a whole number without being one, as sizes read from configurations do."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


def test_sizes_are_whatever_is_a_whole_number() -> None:
    topology = eplb.Topology(_Number(4), _Number(3), num_nodes=_Number(2), dead=[np.int64(3)])
    assert (topology.num_ranks, topology.num_slots, topology.num_live_ranks) == (4, 12, 3)
    start = eplb.Placement.initial(topology, _Number(1), np.int32(8))
    plan = eplb.plan(np.arange(8), current=start, max_moves=_Number(1), spill=np.int64(0), threads=_Number(1))
    assert plan.moves.received <= 1
    router = eplb.Router(topology, _Number(1), _Number(8), row_limit=np.int16(64))
    router.update(plan)
    assert router.route(np.int64(0), [3]).shape == (1,)
    assert type(router.num_layers) is int and repr(router).startswith("Router(quota: 1 layers, 8 experts")

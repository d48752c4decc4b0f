"""Router: what is delivered against the shares, publication under readers, and traffic against plain sums."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eplb


@pytest.fixture
def plan(load: np.ndarray) -> eplb.Plan:
    return eplb.plan(load, num_ranks=8, num_slots=40, num_nodes=2, split="weighted")


def test_shares_are_delivered(plan: eplb.Plan, load: np.ndarray) -> None:
    router = eplb.Router.of(plan, row_limit=4096)
    tokens = 4000
    for layer in range(6):
        slots = router.route(layer, np.repeat(np.arange(32), tokens).reshape(32, tokens))
        assert (plan.physical_to_logical[layer, slots] == np.arange(32)[:, None]).all()
        served = np.bincount(slots.ravel(), minlength=40) / tokens
        assert np.abs(served - plan.shares[layer]).max() <= router.worst_error + 2 / tokens
    assert "shares kept within" in repr(router)


def test_every_prefix_is_within_one_token(plan: eplb.Plan) -> None:
    router = eplb.Router.of(plan)
    slots = router.route(0, np.full(500, 3))
    for slot in set(slots.tolist()):
        share = np.mean(slots[:256] == slot) if (slots[:256] == slot).any() else 0
        served = np.cumsum(slots == slot)
        assert np.abs(served - plan.shares[0, slot] * np.arange(1, 501)).max() < 2 + 500 * router.worst_error, share


def test_kinds_and_shapes(plan: eplb.Plan) -> None:
    ids = np.arange(24).reshape(2, 3, 4)
    expected = eplb.Router.of(plan).route(1, ids)
    assert expected.shape == ids.shape and expected.dtype == np.int32
    for same in (ids.astype(">i2"), ids.astype(np.int64), ids[::-1].copy()[::-1], ids.tolist()):
        np.testing.assert_array_equal(eplb.Router.of(plan).route(1, same), expected)
    torch = pytest.importorskip("torch", exc_type=ImportError)
    answer = eplb.Router.of(plan).route(1, torch.from_numpy(ids))
    assert isinstance(answer, torch.Tensor) and answer.dtype == torch.int32 and answer.numpy().tolist() == expected.tolist()


def test_ids_without_a_slot(plan: eplb.Plan) -> None:
    router = eplb.Router(plan.topology, 6, 32)
    assert router.route(0, [0, 5]).tolist() == [-1, -1]  # before the first update
    router.update(plan)
    assert router.route(0, [-1, 32, 2**31 - 1, -(2**31)]).tolist() == [-1] * 4
    with pytest.raises(eplb.InvalidError):
        router.route(0, [2**31])
    assert router.route(0, np.empty((0, 8), dtype=np.int32)).shape == (0, 8)


def test_positions_belong_to_the_caller(plan: eplb.Plan) -> None:
    router = eplb.Router.of(plan)
    with router.table(2) as table:
        position = table.start(5)
        first = table.route([7] * 3, position)
        out = np.empty(3, dtype=np.int32)
        assert table.route([7] * 3, position, out) is out
        again = table.route([7] * 6, table.start(5))
        assert again.tolist() == [*first, *out]
        for wrong in (np.zeros(32, np.int64), np.zeros(31, np.int32), np.zeros(64, np.int32)[::2]):
            with pytest.raises(eplb.InvalidError, match="position"):
                table.route([1], wrong)
        outs: list[Any] = [np.zeros(1, np.int64), np.zeros(2, np.int32), np.broadcast_to(np.int32(0), 1)]
        for out in outs:
            with pytest.raises(eplb.InvalidError, match="out is not"):
                table.route([1], position, out)


def test_ranks_start_apart(load: np.ndarray) -> None:
    placement = eplb.Placement.initial(eplb.Topology(8, 16), 1, 32)
    with eplb.Router.of(eplb.plan(load[:1], current=placement, max_moves=0)).table(0) as table:
        with pytest.raises(eplb.InvalidError, match="rank 8: expected 0 to 7"):
            table.start(8)
        starts = [table.start(rank) for rank in range(8)]
        first = {tuple(table.route(np.arange(32), start.copy()).tolist()) for start in starts}
    assert len({tuple(start) for start in starts}) == 4 == len(first)  # as many as replicas


def test_tables_are_held_until_released(plan: eplb.Plan) -> None:
    router = eplb.Router.of(plan)
    held = router.table(0)
    block = held.block.copy()
    router.update(plan.placement)
    with pytest.raises(eplb.BusyError):
        router.update(plan)
    np.testing.assert_array_equal(held.block, block)
    assert router.table(0).epoch == held.epoch + 1
    held.release()
    held.release()
    with pytest.raises(eplb.InvalidError, match="released"):
        held.block
    router.update(plan)
    forgotten = router.table(0)
    del forgotten
    router.update(plan)
    router.update(plan)
    assert content(router.copy_block(0)) == content(block)


def test_blocks_for_devices(plan: eplb.Plan) -> None:
    router = eplb.Router.of(plan)
    out = np.zeros(router.block_length, dtype=np.int32)
    assert router.copy_block(3, out) is out
    with router.table(3) as table:
        np.testing.assert_array_equal(table.block, out)
        assert not table.block.flags.writeable
    with pytest.raises(eplb.InvalidError, match="out is not"):
        router.copy_block(3, out[1:])


def test_some_layers(plan: eplb.Plan) -> None:
    router = eplb.Router(plan.topology, 6, 32)
    router.update(plan, first_layer=4)
    assert [int(router.route(layer, [0])[0]) >= 0 for layer in range(6)] == [False] * 4 + [True] * 2
    router.update(plan, first_layer=1, num_layers=1)
    assert int(router.route(1, [0])[0]) >= 0 > int(router.route(0, [0])[0])


def test_quotas_are_kept_to_the_token(plan: eplb.Plan, load: np.ndarray) -> None:
    counts = np.arange(32) * 3
    split = eplb.Resplit(plan.placement, 2).solve(counts)
    router = eplb.Router.of(plan, row_limit=512)
    router.update_quota(2, plan, split.quota)
    ids = np.repeat(np.arange(32), counts)
    slots = router.route(2, ids, np.zeros(32, dtype=np.int32))
    assert np.array_equal(np.bincount(slots, minlength=40), split.quota)
    with pytest.raises(eplb.InvalidError, match="shape"):
        router.update_quota(2, plan, split.quota[1:])


def test_nearest_prefers_its_own_rank(plan: eplb.Plan, load: np.ndarray) -> None:
    sources = np.broadcast_to(load, (8, 6, 32))
    own = 0
    for rank in range(8):
        router = eplb.Router(plan.topology, 6, 32, rule="nearest", source_rank=rank)
        router.update(plan, sources=sources)
        slots = router.route(0, np.repeat(np.arange(32), 64))
        own += int((plan.topology.slot_rank[slots] == rank).sum())
    quota = eplb.Router.of(plan).route(0, np.repeat(np.arange(32), 64))
    assert own > (plan.topology.slot_rank[quota] == 0).sum() * 8 * 1.05


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda plan: eplb.Router(plan.topology, 6, 32, rule="fast"), "rule 'fast'"),
        (lambda plan: eplb.Router(plan.topology, 6, 32, rule="nearest"), "source"),
        (lambda plan: eplb.Router(plan.topology, 6, 32, source_rank=8), "8"),
        (lambda plan: eplb.Router(plan.topology, 6, 32, row_limit=0), "0"),
        (lambda plan: eplb.Router(plan.topology, 0, 32), "0"),
        (lambda plan: eplb.Router(plan.topology, 5, 32).update(plan), "5|6"),
        (lambda plan: eplb.Router.of(plan).update(plan, first_layer=7), "7"),
        (lambda plan: eplb.Router.of(plan).update(plan, shares=-plan.shares), "share"),
        (lambda plan: eplb.Router.of(plan).update(plan, shares=np.zeros((6, 40))), "share"),
        (lambda plan: eplb.Router.of(plan).table(6), "layer 6: expected 0 to 5"),
        (lambda plan: eplb.RouteTable(eplb.Router.of(plan), 99), "layer 99: expected 0 to 5"),
        (lambda plan: eplb.Router.of(plan).route(-1, [0]), "layer is -1"),
    ],
)
def test_refused(plan: eplb.Plan, call: Any, message: str) -> None:
    with pytest.raises(eplb.InvalidError, match=message):
        call(plan)


def content(block: np.ndarray) -> bytes:
    """What a table says (eplb/route_select.h): replicas and rows; behind them a block keeps what it held before."""
    experts, first, slots, row_first, rows = (int(block[index]) for index in (1, 3, 4, 5, 6))
    ends = block[first : first + experts + 1], block[row_first : row_first + experts + 1]
    return b"".join(
        part.tobytes() for part in (*ends, block[slots : slots + ends[0][-1]], block[rows : rows + ends[1][-1]])
    )


def test_readers_and_a_writer(plan: eplb.Plan) -> None:
    """Readers only ever see whole tables of one of two plans."""
    router = eplb.Router.of(plan)
    tables = {content(router.copy_block(0))}
    router.update(plan.placement)
    tables.add(content(router.copy_block(0)))
    stop, wrong = threading.Event(), []

    def read() -> None:
        while not stop.is_set():
            with router.table(0) as table:
                if content(table.block) not in tables:
                    wrong.append(table.epoch)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    done = 0
    for turn in range(200):
        try:
            router.update(plan if turn % 2 else plan.placement)
            done += 1
        except eplb.BusyError:
            time.sleep(0.001)
    stop.set()
    for reader in readers:
        reader.join()
    assert not wrong and done > 10


@given(st.integers(1, 3), st.integers(1, 3), st.data())
def test_traffic_against_plain_sets(nodes: int, per_node: int, data: st.DataObject) -> None:
    topology = eplb.Topology(nodes * per_node, 2, num_nodes=nodes)
    width, tokens = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 6))
    choice = st.lists(st.integers(-1, topology.num_slots - 1), min_size=width, max_size=width)
    slots = np.array(data.draw(st.lists(choice, min_size=tokens, max_size=tokens)), dtype=np.int64).reshape(tokens, width)
    source = np.array(data.draw(st.lists(st.integers(0, topology.num_ranks - 1), min_size=tokens, max_size=tokens)), int)
    sums, matrix = eplb.traffic(topology, slots, source)
    expected = np.zeros((topology.num_ranks, topology.num_ranks), int)
    cross_node = 0
    for row, start in zip(slots, source):
        ranks = {int(slot) // 2 for slot in row if slot >= 0}
        expected[start, sorted(ranks)] += 1
        cross_node += len({rank // per_node for rank in ranks} - {start // per_node})
    np.testing.assert_array_equal(matrix, expected)
    assert (sums.tokens, sums.pairs, sums.rank_sends) == (tokens, int((slots >= 0).sum()), int(expected.sum()))
    assert (sums.cross_rank, sums.cross_node) == (int(expected.sum() - np.trace(expected)), cross_node)


def test_traffic_refuses(plan: eplb.Plan) -> None:
    with pytest.raises(eplb.InvalidError, match="40"):
        eplb.traffic(plan.topology, [[40]], [0])
    with pytest.raises(eplb.InvalidError, match="source"):
        eplb.traffic(plan.topology, [[1]], [0, 1])
    with pytest.raises(eplb.InvalidError, match="8"):
        eplb.traffic(plan.topology, [[1]], [8])
    with pytest.raises(eplb.InvalidError, match=r"expected \[N, K\]"):
        eplb.traffic(plan.topology, [1], [0])

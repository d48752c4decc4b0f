"""Topology: the ranks of an expert-parallel group, their nodes, slots, health and speed."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Iterable, SupportsIndex

import numpy as np

from eplb import arrays
from eplb.errors import InvalidError
from eplb.native import create, ffi, lib, pointer, pointer_or_null, view

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray


class Topology:
    """Ranks of an expert-parallel group, their nodes, slots, health and speed. Immutable; threads may share it.

    Parameters
    ----------
    num_ranks : int
        Members of the group, normally one GPU each.
    slots_per_rank : int, optional
        Slots of every rank; or give ``rank_slots``.
    num_nodes : int
        Nodes; by default rank g is on node ``g * num_nodes // num_ranks``.
    rank_slots : [G] integers, optional
        Slots of each rank, where they differ.
    rank_node : [G] integers, optional
        Node of each rank.
    dead : iterable of int
        Ranks that are not alive.
    rank_speed : [G] numbers, optional
        Relative speeds; only ratios count. Decimals such as 0.8 and simple fractions such as 1/3 are kept exactly, others
        to one millionth of the fastest.

    Source: ``eplb_topology_create``.
    """

    def __init__(
        self,
        num_ranks: SupportsIndex,
        slots_per_rank: SupportsIndex | None = None,
        *,
        num_nodes: SupportsIndex = 1,
        rank_slots: Any = None,
        rank_node: Any = None,
        dead: Iterable[SupportsIndex] = (),
        rank_speed: Any = None,
    ) -> None:
        if (slots_per_rank is None) == (rank_slots is None):
            raise InvalidError("give either slots_per_rank or rank_slots")
        ranks = arrays.size(num_ranks, "num_ranks", lib.EPLB_MAX_RANKS)
        slots = _per_rank(rank_slots, "rank_slots", ranks)
        node = _per_rank(rank_node, "rank_node", ranks)
        speed = None if rank_speed is None else _per_rank(_whole(rank_speed), "rank_speed", ranks)
        alive = np.ones(ranks, dtype=np.uint8)
        for rank in map(operator.index, dead):
            if not 0 <= rank < ranks:
                raise InvalidError(f"dead rank {rank}: expected 0 to {ranks - 1}", rank=rank)
            alive[rank] = 0
        params = ffi.new("eplb_topology_params *")
        lib.eplb_topology_params_init(params, ffi.sizeof("eplb_topology_params"))
        params.num_ranks = ranks
        params.num_nodes = arrays.size(num_nodes, "num_nodes")
        params.slots_per_rank = 0 if slots_per_rank is None else arrays.size(slots_per_rank, "slots_per_rank")
        params.rank_slots = pointer_or_null(slots, "int32_t")
        params.rank_node = pointer_or_null(node, "int32_t")
        params.rank_alive = pointer(alive, "uint8_t")
        params.rank_speed = pointer_or_null(speed, "int32_t")
        self._handle = create(lib.eplb_topology_create, lib.eplb_topology_destroy, params)

    @classmethod
    def _adopt(cls, handle: Any, owner: Any = None) -> Topology:
        """A topology over a handle that frees itself, or over one that `owner` keeps."""
        topology = cls.__new__(cls)
        topology._handle = handle
        topology._owner = owner
        return topology

    _owner: Any = None

    @classmethod
    def spread(cls, num_ranks: SupportsIndex, num_slots: SupportsIndex, **options: Any) -> Topology:
        """A topology of that many slots in all; where they do not divide by the ranks, the first ranks get one more."""
        ranks = arrays.size(num_ranks, "num_ranks", lib.EPLB_MAX_RANKS)
        slots = arrays.slots(num_slots, "num_slots")
        if ranks == 0:
            raise InvalidError("num_ranks is 0: expected 1 or more")
        each, more = divmod(slots, ranks)
        return cls(ranks, rank_slots=np.where(np.arange(ranks) < more, each + 1, each), **options)

    def with_dead(self, dead: Iterable[SupportsIndex]) -> Topology:
        """A copy in which exactly the listed ranks are dead.

        Source: ``eplb_topology_with_dead``.
        """
        ranks = arrays.as_int32(list(dead), "dead")
        return Topology._adopt(
            create(
                lib.eplb_topology_with_dead,
                lib.eplb_topology_destroy,
                self._handle,
                pointer(ranks, "int32_t"),
                len(ranks),
            )
        )

    @property
    def num_ranks(self) -> int:
        """G, dead ranks included."""
        return lib.eplb_topology_num_ranks(self._handle)

    @property
    def num_nodes(self) -> int:
        """N."""
        return lib.eplb_topology_num_nodes(self._handle)

    @property
    def num_slots(self) -> int:
        """S, dead ranks included."""
        return lib.eplb_topology_num_slots(self._handle)

    @property
    def num_live_ranks(self) -> int:
        """Ranks that are alive."""
        return lib.eplb_topology_num_live_ranks(self._handle)

    @property
    def num_live_slots(self) -> int:
        """Slots on live ranks."""
        return lib.eplb_topology_num_live_slots(self._handle)

    @property
    def slots_per_rank(self) -> int | None:
        """Slots of every rank; None where ranks differ."""
        slots = lib.eplb_topology_uniform_slots(self._handle)
        return None if slots < 0 else slots

    @property
    def first_slot(self) -> NDArray[np.int32]:
        """[G + 1] int32: rank g owns slots ``first_slot[g]`` to ``first_slot[g + 1] - 1``. Read-only view."""
        return view(self, lib.eplb_topology_first_slot(self._handle), (self.num_ranks + 1,), np.int32)

    @property
    def slot_rank(self) -> NDArray[np.int32]:
        """[S] int32: rank of each slot. Read-only view."""
        return view(self, lib.eplb_topology_slot_rank(self._handle), (self.num_slots,), np.int32)

    @property
    def rank_node(self) -> NDArray[np.int32]:
        """[G] int32: node of each rank. Read-only view."""
        return view(self, lib.eplb_topology_rank_node(self._handle), (self.num_ranks,), np.int32)

    @property
    def rank_alive(self) -> NDArray[np.uint8]:
        """[G] uint8: 1 alive, 0 dead. Read-only view."""
        return view(self, lib.eplb_topology_rank_alive(self._handle), (self.num_ranks,), np.uint8)

    @property
    def rank_speed(self) -> NDArray[np.int32]:
        """[G] int32: relative speeds. Read-only view."""
        return view(self, lib.eplb_topology_rank_speed(self._handle), (self.num_ranks,), np.int32)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Topology) and lib.eplb_topology_equal(self._handle, other._handle)

    def __hash__(self) -> int:
        return hash((self.num_ranks, self.num_nodes, self.num_slots, self.rank_alive.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        slots, dead = np.diff(self.first_slot), np.flatnonzero(self.rank_alive == 0)
        return _restore, (self.num_nodes, slots, self.rank_node.copy(), dead, self.rank_speed.copy())

    def __repr__(self) -> str:
        dead = self.num_ranks - self.num_live_ranks
        lost = f", {dead} dead" if dead else ""
        return f"Topology({self.num_ranks} ranks, {self.num_nodes} nodes, {self.num_slots} slots{lost})"


def _restore(num_nodes: int, slots: Any, node: Any, dead: Any, speed: Any) -> Topology:
    """A topology that was pickled or copied."""
    return Topology(len(slots), num_nodes=num_nodes, rank_slots=slots, rank_node=node, dead=dead, rank_speed=speed)


def _per_rank(value: Any, name: str, ranks: int) -> NDArray[Any] | None:
    return None if value is None else arrays.of_shape(arrays.as_int32(value, name), name, (ranks,))


def _simple(speed: Any) -> Fraction:
    """The fraction that a speed was meant as: of small numbers where that is the same float, else its decimals."""
    from fractions import Fraction

    decimal = Fraction(str(speed))
    small = decimal.limit_denominator(1000)
    return small if type(speed)(float(small)) == speed else decimal


def _whole(speeds: Any) -> Any:
    """Speeds as whole numbers: the smallest in the same proportion, or the nearest with the fastest at the limit.

    Integers stay as they are.
    """
    array = arrays.as_numpy(speeds, "rank_speed")
    if array.dtype.kind != "f" or array.ndim != 1:
        return array
    for rank, speed in enumerate(array):
        if not np.isfinite(speed) or speed <= 0:
            raise InvalidError(f"rank_speed of rank {rank} is {speed}: expected a finite number above 0", rank=rank)
    from fractions import Fraction
    from math import gcd, lcm

    exact = [_simple(speed) for speed in array]
    divisor, denominator = gcd(*(speed.numerator for speed in exact)), lcm(*(speed.denominator for speed in exact))
    fastest = max(exact, default=Fraction(1))
    # gcd(p1/q1, p2/q2, ...) = gcd(p) / lcm(q) for reduced fractions
    scale = Fraction(denominator, divisor or 1)
    if fastest * scale > lib.EPLB_MAX_SPEED:
        scale = lib.EPLB_MAX_SPEED / fastest
    whole = [round(speed * scale) for speed in exact]
    if whole and min(whole) < 1:
        raise InvalidError(
            f"rank_speed ranges from {array.min()} to {array.max()}: expected a ratio of at most {lib.EPLB_MAX_SPEED}"
        )
    return np.array(whole, dtype=np.int64)

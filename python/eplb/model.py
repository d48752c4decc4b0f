"""The nouns: topology, load and placement, each a thin handle on its C object."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

import numpy as np

from eplb import arrays
from eplb.errors import InvalidError
from eplb.native import create, ffi, lib, new_error, pointer, raise_for, view


def _optional_int32(value: Any, name: str, length: int) -> np.ndarray | None:
    if value is None:
        return None
    array = arrays.as_int32(value, name)
    if array.shape != (length,):
        raise InvalidError(f"{name} has shape {array.shape}: expected ({length},)")
    return array


def _pointer_or_null(array: np.ndarray | None, c_type: str) -> Any:
    return ffi.NULL if array is None else pointer(array, c_type)


class Topology:
    """Ranks of an expert-parallel group, their nodes, slots, health and speed. Immutable; safe to share between threads.

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
    dead : list of int, optional
        Ranks that are not alive.
    rank_speed : [G] integers, optional
        Relative speeds, 1 to 1,000,000; only ratios count.

    Source: ``eplb_topology_create``.
    """

    def __init__(
        self,
        num_ranks: int,
        slots_per_rank: int | None = None,
        *,
        num_nodes: int = 1,
        rank_slots: Any = None,
        rank_node: Any = None,
        dead: Sequence[int] = (),
        rank_speed: Any = None,
    ) -> None:
        if (slots_per_rank is None) == (rank_slots is None):
            raise InvalidError("give either slots_per_rank or rank_slots")
        slots = _optional_int32(rank_slots, "rank_slots", num_ranks)
        node = _optional_int32(rank_node, "rank_node", num_ranks)
        speed = _optional_int32(rank_speed, "rank_speed", num_ranks)
        alive = np.ones(max(num_ranks, 0), dtype=np.uint8)
        for rank in dead:
            if not 0 <= rank < num_ranks:
                raise InvalidError(f"dead rank {rank}: expected 0 to {num_ranks - 1}", rank=rank)
            alive[rank] = 0
        params = ffi.new("eplb_topology_params *")
        lib.eplb_topology_params_init(params, ffi.sizeof("eplb_topology_params"))
        params.num_ranks = num_ranks
        params.num_nodes = num_nodes
        params.slots_per_rank = slots_per_rank or 0
        params.rank_slots = _pointer_or_null(slots, "int32_t")
        params.rank_node = _pointer_or_null(node, "int32_t")
        params.rank_alive = pointer(alive, "uint8_t")
        params.rank_speed = _pointer_or_null(speed, "int32_t")
        self._handle = create(lib.eplb_topology_create, lib.eplb_topology_destroy, params)

    @classmethod
    def _adopt(cls, handle: Any) -> Topology:
        topology = cls.__new__(cls)
        topology._handle = handle
        return topology

    def with_dead(self, dead: Sequence[int]) -> Topology:
        """A copy in which exactly the listed ranks are dead."""
        ranks = np.asarray(list(dead), dtype=np.int32)
        return Topology._adopt(
            create(lib.eplb_topology_with_dead, lib.eplb_topology_destroy, self._handle, pointer(ranks, "int32_t"),
                   len(ranks))
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
    def first_slot(self) -> np.ndarray:
        """[G + 1] int32: rank g owns slots ``first_slot[g]`` to ``first_slot[g + 1] - 1``. Read-only view."""
        return view(self, lib.eplb_topology_first_slot(self._handle), (self.num_ranks + 1,), np.int32)

    @property
    def slot_rank(self) -> np.ndarray:
        """[S] int32: rank of each slot. Read-only view."""
        return view(self, lib.eplb_topology_slot_rank(self._handle), (self.num_slots,), np.int32)

    @property
    def rank_node(self) -> np.ndarray:
        """[G] int32: node of each rank. Read-only view."""
        return view(self, lib.eplb_topology_rank_node(self._handle), (self.num_ranks,), np.int32)

    @property
    def rank_alive(self) -> np.ndarray:
        """[G] uint8: 1 alive, 0 dead. Read-only view."""
        return view(self, lib.eplb_topology_rank_alive(self._handle), (self.num_ranks,), np.uint8)

    @property
    def rank_speed(self) -> np.ndarray:
        """[G] int32: relative speeds. Read-only view."""
        return view(self, lib.eplb_topology_rank_speed(self._handle), (self.num_ranks,), np.int32)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Topology) and lib.eplb_topology_equal(self._handle, other._handle)

    def __hash__(self) -> int:
        return hash((self.num_ranks, self.num_nodes, self.num_slots, self.rank_alive.tobytes()))

    def __repr__(self) -> str:
        dead = self.num_ranks - self.num_live_ranks
        lost = f", {dead} dead" if dead else ""
        return f"Topology({self.num_ranks} ranks, {self.num_nodes} nodes, {self.num_slots} slots{lost})"


class Load:
    """Tokens per logical expert, layer and window.

    Parameters
    ----------
    counts : [E], [L, E] or [T, L, E]
        Integers are taken as they are, without a copy where they are int32 or int64 (the array must then not change while
        the load lives). Floats must be finite and not negative; see ``eplb/load.h`` for how they become integers.

    Source: ``eplb_load_create``.
    """

    _ELEMENTS = {
        np.dtype(np.int32): lib.EPLB_ELEMENT_INT32,
        np.dtype(np.int64): lib.EPLB_ELEMENT_INT64,
        np.dtype(np.float32): lib.EPLB_ELEMENT_FLOAT32,
        np.dtype(np.float64): lib.EPLB_ELEMENT_FLOAT64,
    }

    def __init__(self, counts: Any) -> None:
        array = arrays.as_counts(counts, "counts")
        if not 1 <= array.ndim <= 3:
            raise InvalidError(f"counts has shape {array.shape}: expected [E], [L, E] or [T, L, E]")
        array = array.reshape((1,) * (3 - array.ndim) + array.shape) if array.ndim < 3 else array
        params = ffi.new("eplb_load_params *")
        lib.eplb_load_params_init(params, ffi.sizeof("eplb_load_params"))
        params.num_windows, params.num_layers, params.num_experts = array.shape
        params.element = self._ELEMENTS[array.dtype]
        params.counts = ffi.cast("void *", array.ctypes.data)
        params.stride_bytes = list(array.strides)
        params.borrow = array.dtype.kind == "i"
        self._counts = array
        self._handle = create(lib.eplb_load_create, lib.eplb_load_destroy, params)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(T, L, E)."""
        return self._counts.shape  # type: ignore[return-value]

    @property
    def num_windows(self) -> int:
        """T."""
        return self._counts.shape[0]

    @property
    def num_layers(self) -> int:
        """L."""
        return self._counts.shape[1]

    @property
    def num_experts(self) -> int:
        """E."""
        return self._counts.shape[2]

    @property
    def scale_log2(self) -> int:
        """Power of two that floating-point counts were multiplied by; 0 for integers."""
        return lib.eplb_load_scale_log2(self._handle)

    def sum(self) -> np.ndarray:
        """[L, E] int64: counts summed over windows."""
        total = np.empty((self.num_layers, self.num_experts), dtype=np.int64)
        for layer in range(self.num_layers):
            lib.eplb_load_sum(self._handle, layer, pointer(total[layer], "int64_t"))
        return total

    def windows(self) -> np.ndarray:
        """[T, L, E] int64: the counts as the library sees them."""
        counts = np.empty((self.num_layers, self.num_windows, self.num_experts), dtype=np.int64)
        for layer in range(self.num_layers):
            lib.eplb_load_windows(self._handle, layer, pointer(counts[layer], "int64_t"))
        return counts.swapaxes(0, 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Load) and lib.eplb_load_equal(self._handle, other._handle)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        windows, layers, experts = self.shape
        total = sum(lib.eplb_load_total(self._handle, layer) for layer in range(layers))
        return f"Load({windows} windows, {layers} layers, {experts} experts, {total} tokens)"


def as_load(value: Any) -> Load:
    """`value` itself if it is a Load, else a Load made from it."""
    return value if isinstance(value, Load) else Load(value)


@dataclass(frozen=True)
class Problem:
    """One broken invariant of a placement; fields that do not apply are -1."""

    kind: str
    layer: int
    expert: int
    rank: int
    slot: int


@dataclass(frozen=True)
class Moves:
    """What it takes to go from one placement to another, summed over layers."""

    slots: int
    received: int
    cross_node: int
    max_received_per_rank: int
    lost: int


def moves_of(count: Any) -> Moves:
    """An eplb_move_count as Moves."""
    return Moves(count.slots, count.received, count.cross_node, count.max_received_per_rank, count.lost)


@ffi.def_extern(name="eplb_python_problem")
def _collect_problem(context: Any, problem: Any) -> bool:
    kind = ffi.string(lib.eplb_problem_name(problem.kind)).decode()
    found: list[Problem] = ffi.from_handle(context)
    found.append(Problem(kind, problem.layer, problem.expert, problem.rank, problem.slot))
    return True


class Placement:
    """Which logical expert each slot holds. Immutable; safe to share between threads.

    Parameters
    ----------
    topology : Topology
        The ranks that own the slots; copied.
    physical_to_logical : [L, S] or [S] integers
        Expert in each slot, -1 for empty.
    num_experts : int
        E.

    Source: ``eplb_placement_create``.
    """

    def __init__(self, topology: Topology, physical_to_logical: Any, num_experts: int) -> None:
        slots = arrays.as_int32(physical_to_logical, "physical_to_logical")
        slots = slots.reshape(1, -1) if slots.ndim == 1 else slots
        if slots.ndim != 2 or slots.shape[1] != topology.num_slots:
            raise InvalidError(f"physical_to_logical has shape {slots.shape}: expected [L, {topology.num_slots}]")
        self._handle = create(
            lib.eplb_placement_create, lib.eplb_placement_destroy, topology._handle, slots.shape[0], num_experts,
            pointer(slots, "int32_t"),
        )

    @classmethod
    def _adopt(cls, handle: Any) -> Placement:
        placement = cls.__new__(cls)
        placement._handle = handle
        return placement

    @classmethod
    def initial(cls, topology: Topology, num_layers: int, num_experts: int) -> Placement:
        """The start layout that engine loaders fill: slot p holds expert ``p % num_experts``."""
        return cls._adopt(
            create(lib.eplb_placement_create_initial, lib.eplb_placement_destroy, topology._handle, num_layers,
                   num_experts)
        )

    @property
    def topology(self) -> Topology:
        """A copy of the topology."""
        pointer_to = lib.eplb_placement_topology(self._handle)
        return Topology._adopt(create(lib.eplb_topology_copy, lib.eplb_topology_destroy, pointer_to))

    @property
    def num_layers(self) -> int:
        """L."""
        return lib.eplb_placement_num_layers(self._handle)

    @property
    def num_experts(self) -> int:
        """E."""
        return lib.eplb_placement_num_experts(self._handle)

    @property
    def num_slots(self) -> int:
        """S."""
        return lib.eplb_placement_num_slots(self._handle)

    @property
    def max_replicas(self) -> int:
        """Largest number of replicas of an expert."""
        return lib.eplb_placement_max_replicas(self._handle)

    @property
    def physical_to_logical(self) -> np.ndarray:
        """[L, S] int32: expert in each slot, -1 where empty. Read-only view."""
        return view(self, lib.eplb_placement_physical_to_logical(self._handle), (self.num_layers, self.num_slots),
                    np.int32)

    @property
    def replica_count(self) -> np.ndarray:
        """[L, E] int32: live replicas of each expert. Read-only view."""
        return view(self, lib.eplb_placement_replica_count(self._handle), (self.num_layers, self.num_experts),
                    np.int32)

    def logical_to_physical(self, width: int | None = None, dtype: Any = np.int64) -> np.ndarray:
        """[L, E, width] slots of each expert, ascending, padded with -1; width defaults to ``max_replicas``."""
        wanted = np.dtype(dtype)
        if wanted not in (np.dtype(np.int32), np.dtype(np.int64)):
            raise TypeError(f"dtype {wanted}: expected int32 or int64")
        width = self.max_replicas if width is None else width
        dense = np.empty((self.num_layers, self.num_experts, max(width, 0)), dtype=wanted)
        error = new_error()
        fill, c_type = (
            (lib.eplb_placement_dense_int32, "int32_t")
            if wanted == np.int32
            else (lib.eplb_placement_dense_int64, "int64_t")
        )
        raise_for(fill(self._handle, width, pointer(dense, c_type), error), error)
        return dense

    def problems(self) -> list[Problem]:
        """Every broken invariant, and every empty slot; an empty list means perfect."""
        found: list[Problem] = []
        context = ffi.new_handle(found)
        lib.eplb_placement_check(
            lib.eplb_placement_topology(self._handle), self.num_layers, self.num_experts,
            lib.eplb_placement_physical_to_logical(self._handle), lib.eplb_python_problem, context, ffi.NULL,
            ffi.NULL,
        )
        return found

    def check(self) -> None:
        """Raises InvalidError with the first serious problem, if there is one."""
        error = new_error()
        raise_for(lib.eplb_placement_is_valid(self._handle, error), error)

    def rank_load(self, load: Any, shares: Any = None, window: int | None = None) -> np.ndarray:
        """[L, G] float64: load of each rank on the sum of all windows or on one window."""
        load = as_load(load)
        rows = _shares_or_none(shares, self)
        ranks = lib.eplb_topology_num_ranks(lib.eplb_placement_topology(self._handle))
        result = np.empty((self.num_layers, ranks))
        error = new_error()
        for layer in range(self.num_layers):
            share = ffi.NULL if rows is None else pointer(rows[layer], "double")
            raise_for(
                lib.eplb_rank_load(load._handle, layer, -1 if window is None else window, self._handle, share,
                                   pointer(result[layer], "double"), ffi.NULL, error),
                error,
            )
        return result

    def imbalance(self, load: Any, shares: Any = None) -> np.ndarray:
        """[L] float64: max over mean of rank loads of each layer; equal split without ``shares``."""
        load = as_load(load)
        rows = _shares_or_none(shares, self)
        result = np.empty(self.num_layers)
        error = new_error()
        raise_for(
            lib.eplb_imbalance_per_layer(load._handle, self._handle,
                                         ffi.NULL if rows is None else pointer(rows, "double"),
                                         pointer(result, "double"), ffi.NULL, error),
            error,
        )
        return result

    def moves_to(self, after: Placement) -> Moves:
        """What it takes to go from this placement to another."""
        count = ffi.new("eplb_move_count *")
        error = new_error()
        raise_for(
            lib.eplb_placement_count_moves(self._handle, after._handle, count, ffi.NULL, ffi.NULL, error), error
        )
        return moves_of(count)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Placement) and lib.eplb_placement_equal(self._handle, other._handle)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"Placement({self.num_layers} layers, {self.num_experts} experts in {self.num_slots} slots, "
            f"at most {self.max_replicas} replicas)"
        )


def _shares_or_none(shares: Any, placement: Placement) -> np.ndarray | None:
    if shares is None:
        return None
    rows = np.ascontiguousarray(arrays.as_numpy(shares, "shares"), dtype=np.float64)
    expected = (placement.num_layers, placement.num_slots)
    if rows.shape != expected:
        raise InvalidError(f"shares has shape {rows.shape}: expected {expected}")
    return rows

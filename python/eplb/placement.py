"""Placement: which logical expert each slot holds, what is wrong with it, and what it takes to get to another."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

import numpy as np

from eplb import arrays, display, document
from eplb.errors import InvalidError
from eplb.load import as_load
from eplb.native import create, ffi, keep_exception, lib, new_error, pointer, pointer_or_null, raise_for, text, view
from eplb.topology import Topology

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from eplb.document import SavedPlan
    from eplb.planning import Plan


class Problem(NamedTuple):
    """One broken invariant of a placement; fields that do not apply are -1."""

    kind: str
    layer: int
    expert: int
    rank: int
    slot: int


class Moves(NamedTuple):
    """What it takes to go from one placement to another, summed over layers.

    ``slots``: slots whose expert changed. ``received``: experts that a rank did not hold before. ``cross_node``: of these,
    experts that live ranks held, but none of the node. ``max_received_per_rank``: the most of one rank in one layer. ``lost``:
    received experts that no live rank held before, which must come from storage.
    """

    slots: int
    received: int
    cross_node: int
    max_received_per_rank: int
    lost: int


def moves_of(count: Any) -> Moves:
    """An eplb_move_count as Moves."""
    return Moves(*(getattr(count, name) for name in Moves._fields))


class _Problems:
    """What is found while C walks a placement; an exception on the way ends the walk and comes out of the call."""

    def __init__(self) -> None:
        self.found: list[Problem] = []
        self.exception: BaseException | None = None


@ffi.def_extern(name="eplb_python_problem", error=False, onerror=keep_exception)
def _collect_problem(context: Any, problem: Any) -> bool:
    problems: _Problems = ffi.from_handle(context)
    problems.found.append(
        Problem(text(lib.eplb_problem_name(problem.kind)), problem.layer, problem.expert, problem.rank, problem.slot)
    )
    return True


class Placement:
    """Which logical expert each slot holds. Immutable; threads may share it.

    A broken placement can be held and described: see :meth:`problems` and :meth:`check`.

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

    _owner: Any = None

    def __init__(self, topology: Topology, physical_to_logical: Any, num_experts: SupportsIndex) -> None:
        slots = arrays.as_int32(physical_to_logical, "physical_to_logical")
        slots = slots.reshape(1, -1) if slots.ndim == 1 else slots
        if slots.ndim != 2 or slots.shape[1] != topology.num_slots:
            raise InvalidError(f"physical_to_logical has shape {slots.shape}: expected [L, {topology.num_slots}]")
        self._handle = create(
            lib.eplb_placement_create,
            lib.eplb_placement_destroy,
            topology._handle,
            arrays.size(slots.shape[0], "number of layers"),
            arrays.size(num_experts, "num_experts"),
            pointer(slots, "int32_t"),
        )

    @classmethod
    def _adopt(cls, handle: Any, owner: Any = None) -> Placement:
        """A placement over a handle that frees itself, or over one that `owner` keeps."""
        placement = cls.__new__(cls)
        placement._handle = handle
        placement._owner = owner
        return placement

    @classmethod
    def initial(cls, topology: Topology, num_layers: SupportsIndex, num_experts: SupportsIndex) -> Placement:
        """The start layout that engine loaders fill: slot p holds expert ``p % num_experts``.

        Source: ``eplb_placement_create_initial``.
        """
        return cls._adopt(
            create(
                lib.eplb_placement_create_initial,
                lib.eplb_placement_destroy,
                topology._handle,
                arrays.size(num_layers, "num_layers"),
                arrays.size(num_experts, "num_experts"),
            )
        )

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Placement:
        """The placement of a plan document (:meth:`to_dict`, or JSON that the command wrote)."""
        return document.read(content).placement

    @property
    def topology(self) -> Topology:
        """The ranks it was made for."""
        return Topology._adopt(lib.eplb_placement_topology(self._handle), self)

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
    def physical_to_logical(self) -> NDArray[np.int32]:
        """[L, S] int32: expert in each slot, -1 where empty. Read-only view."""
        shape = (self.num_layers, self.num_slots)
        return view(self, lib.eplb_placement_physical_to_logical(self._handle), shape, np.int32)

    @property
    def replica_count(self) -> NDArray[np.int32]:
        """[L, E] int32: live replicas of each expert. Read-only view."""
        shape = (self.num_layers, self.num_experts)
        return view(self, lib.eplb_placement_replica_count(self._handle), shape, np.int32)

    @property
    def replica_first(self) -> NDArray[np.int32]:
        """[L, E + 1] int32: where in its layer's row of :attr:`replica_slots` each expert begins. Read-only view."""
        shape = (self.num_layers, self.num_experts + 1)
        return view(self, lib.eplb_placement_replica_first(self._handle), shape, np.int32)

    @property
    def replica_slots(self) -> NDArray[np.int32]:
        """[L, S] int32: live slots by expert, ascending: the compact logical_to_physical. Read-only view."""
        shape = (self.num_layers, self.num_slots)
        return view(self, lib.eplb_placement_replica_slots(self._handle), shape, np.int32)

    def logical_to_physical(self, width: SupportsIndex | None = None, dtype: Any = np.int64) -> NDArray[Any]:
        """[L, E, width] slots of each expert, ascending, padded with -1; width defaults to :attr:`max_replicas`.

        Source: ``eplb_placement_dense_int64``, ``eplb_placement_dense_int32``.
        """
        wanted, c_type = arrays.of_slots(dtype)
        columns = self.max_replicas if width is None else arrays.slots(width, "width")
        dense = np.empty((self.num_layers, self.num_experts, columns), dtype=wanted)
        error = new_error()
        fill = lib.eplb_placement_dense_int32 if wanted == np.int32 else lib.eplb_placement_dense_int64
        raise_for(fill(self._handle, columns, pointer(dense, c_type), error), error)
        return dense

    def problems(self) -> list[Problem]:
        """Every broken invariant, and every empty slot; an empty list means perfect.

        Source: ``eplb_placement_check``.
        """
        problems = _Problems()
        context = ffi.new_handle(problems)
        error = new_error()
        status = lib.eplb_placement_check(
            lib.eplb_placement_topology(self._handle),
            self.num_layers,
            self.num_experts,
            lib.eplb_placement_physical_to_logical(self._handle),
            lib.eplb_python_problem,
            context,
            ffi.NULL,
            error,
        )
        if problems.exception is not None:
            raise problems.exception
        if status != lib.EPLB_ERROR_INVALID:  # which is what was asked for
            raise_for(status, error)
        return problems.found

    def check(self) -> None:
        """Raises InvalidError with the first serious problem, if there is one.

        Source: ``eplb_placement_is_valid``.
        """
        error = new_error()
        raise_for(lib.eplb_placement_is_valid(self._handle, error), error)

    def rank_load(self, load: Any, shares: Any = None, window: SupportsIndex | None = None) -> NDArray[np.float64]:
        """[L, G] float64: load of each rank on the sum of all windows or on one window; equal split without `shares`.

        Shares are at least 0 and sum to 1 over the live replicas of every expert that has tokens.

        Source: ``eplb_rank_load``.
        """
        given = as_load(load)
        if given.shape[1:] != (self.num_layers, self.num_experts):
            raise InvalidError(
                f"the load has {given.num_layers} layers of {given.num_experts} experts: "
                f"expected {self.num_layers} of {self.num_experts}"
            )
        rows = as_shares(shares, self)
        if rows is not None:
            check_shares(rows, self, given.sum())
        result = np.empty((self.num_layers, self.topology.num_ranks))
        index = -1 if window is None else arrays.size(window, "window")
        error = new_error()
        for layer in range(self.num_layers):
            share = ffi.NULL if rows is None else pointer(rows[layer], "double")
            status = lib.eplb_rank_load(
                given._handle, layer, index, self._handle, share, pointer(result[layer], "double"), ffi.NULL, error
            )
            raise_for(status, error)
        return result

    def imbalance(self, load: Any, shares: Any = None) -> NDArray[np.float64]:
        """[L] float64: max over mean of rank loads of each layer; equal split without `shares`.

        Source: ``eplb_imbalance_per_layer``.
        """
        given = as_load(load)
        rows = as_shares(shares, self)
        if rows is not None and given.shape[1:] == (self.num_layers, self.num_experts):
            check_shares(rows, self, given.sum())
        result = np.empty(self.num_layers)
        error = new_error()
        status = lib.eplb_imbalance_per_layer(
            given._handle, self._handle, pointer_or_null(rows, "double"), pointer(result, "double"), ffi.NULL, error
        )
        raise_for(status, error)
        return result

    def cross_node_tokens(self, load: Any, shares: Any = None, sources: Any = None) -> NDArray[np.float64]:
        """[L] float64: tokens of each layer that must leave the node they start on; equal split without `shares`.

        Tokens start evenly over ranks, or as `sources` [G, L, E], tokens by source rank, tells.

        Source: ``eplb_cross_node_tokens``.
        """
        given = as_load(load)
        origin = None if sources is None else as_load(sources)
        rows = as_shares(shares, self)
        result = np.empty(self.num_layers)
        error = new_error()
        status = lib.eplb_cross_node_tokens(
            given._handle,
            self._handle,
            pointer_or_null(rows, "double"),
            ffi.NULL if origin is None else origin._handle,
            pointer(result, "double"),
            ffi.NULL,
            error,
        )
        raise_for(status, error)
        return result

    def moves_to(self, after: Placement | Plan | SavedPlan) -> Moves:
        """What it takes to go from this placement to another, whose ranks and slots may be more or fewer.

        Source: ``eplb_placement_count_moves``.
        """
        count = ffi.new("eplb_move_count *")
        error = new_error()
        status = lib.eplb_placement_count_moves(self._handle, as_placement(after, "after")._handle, count, ffi.NULL, ffi.NULL, error)
        raise_for(status, error)
        return moves_of(count)

    def to_dict(self) -> dict[str, Any]:
        """The placement as the document that the command reads and writes."""
        return document.of_placement(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes :meth:`to_dict` as JSON, whole or not at all; ``eplb verify`` and the other commands read it."""
        document.save(self.to_dict(), path)

    def heatmap(self, load: Any, shares: Any = None, axes: Any = None) -> Any:
        """Draws the load of each live rank over its fair part (by speed) with matplotlib; returns the axes."""
        return display.heatmap(display.over_fair(self.rank_load(load, shares), self.topology), "rank", axes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Placement) and lib.eplb_placement_equal(self._handle, other._handle)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return Placement, (self.topology, self.physical_to_logical.copy(), self.num_experts)

    def __repr__(self) -> str:
        return (
            f"Placement({self.num_layers} layers, {self.num_experts} experts in {self.num_slots} slots of "
            f"{self.topology.num_ranks} ranks, at most {self.max_replicas} replicas)"
        )


def as_placement(value: Any, name: str = "placement") -> Placement:
    """The placement of a Placement, Plan or SavedPlan."""
    placement = getattr(value, "placement", value)
    if not isinstance(placement, Placement):
        raise TypeError(f"{name} is a {type(value).__name__}: expected a Placement, Plan or SavedPlan")
    return placement


def check_shares(
    rows: NDArray[np.float64], placement: Placement, counts: NDArray[np.int64] | None = None
) -> None:
    """Refuses shares that no split has: each at least 0, those of an expert sum to 1.

    Without tokens, in `counts` [L, E], an expert needs none.
    """
    active = placement.replica_count > 0 if counts is None else (placement.replica_count > 0) & (counts > 0)
    broken = np.argwhere(~(np.isfinite(rows) & (rows >= 0)))
    if len(broken):
        layer, slot = broken[0].tolist()
        raise InvalidError(
            f"layer {layer}, slot {slot}: share {rows[layer, slot]}: expected at least 0", layer=layer, slot=slot
        )
    topology, held = placement.topology, placement.physical_to_logical
    live = (held >= 0) & (held < placement.num_experts) & (topology.rank_alive[topology.slot_rank] != 0)
    for layer in range(placement.num_layers):
        slots = live[layer]
        sums = np.bincount(held[layer][slots], weights=rows[layer][slots], minlength=placement.num_experts)
        wrong = np.flatnonzero(active[layer] & (np.abs(sums - 1) > 1e-6))
        if len(wrong):
            expert = int(wrong[0])
            raise InvalidError(
                f"layer {layer}, expert {expert}: shares sum to {sums[expert]:.9g}: expected 1", layer=layer, expert=expert
            )


def as_shares(shares: Any, placement: Placement) -> NDArray[np.float64] | None:
    """[L, S] float64, or None."""
    if shares is None:
        return None
    rows = arrays.as_floats(shares, "shares", np.float64)
    return arrays.of_shape(rows, "shares", (placement.num_layers, placement.num_slots))

"""Planning: one function with every option of the command, and the plan it returns."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, SupportsIndex

import numpy as np

from eplb import display, document
from eplb.document import SPLITS, SavedPlan
from eplb.load import Load
from eplb.native import ffi, lib, new_error, raise_for, text, view
from eplb.placement import Moves, Placement, moves_of
from eplb.request import Request
from eplb.topology import Topology

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SPLIT_NAMES = {number: name for name, number in SPLITS.items()}


def policies() -> dict[str, str]:
    """Names of all policies and what each does.

    Source: ``eplb_policy_name``, ``eplb_policy_summary``.
    """
    return {
        text(lib.eplb_policy_name(index)): text(lib.eplb_policy_summary(index))
        for index in range(lib.eplb_policy_count())
    }


class Plan:
    """A placement, the shares its replicas serve, a certificate and the moves it costs. Made by :func:`plan`.

    Immutable; threads may share it. Arrays are read-only views that keep the plan alive.
    """

    def __init__(self, handle: Any, load: Load, current: Placement | None, sources: Load | None = None) -> None:
        self._handle = handle
        self._load = load
        self._current = current
        self._sources = sources

    @property
    def has_current(self) -> bool:
        """Whether the plan was made from a current placement."""
        return self._current is not None

    @property
    def placement(self) -> Placement:
        """The placement."""
        return Placement._adopt(lib.eplb_plan_placement(self._handle), self)

    @property
    def topology(self) -> Topology:
        """The ranks it was made for."""
        return self.placement.topology

    @property
    def _shape(self) -> tuple[int, int]:
        placement = lib.eplb_plan_placement(self._handle)
        return lib.eplb_placement_num_layers(placement), lib.eplb_placement_num_slots(placement)

    @property
    def physical_to_logical(self) -> NDArray[np.int32]:
        """[L, S] int32: expert in each slot, -1 where empty. Read-only view."""
        placement = lib.eplb_plan_placement(self._handle)
        return view(self, lib.eplb_placement_physical_to_logical(placement), self._shape, np.int32)

    @property
    def replica_count(self) -> NDArray[np.int32]:
        """[L, E] int32: live replicas of each expert. Read-only view."""
        return self.placement.replica_count

    def logical_to_physical(self, width: SupportsIndex | None = None, dtype: Any = np.int64) -> NDArray[Any]:
        """[L, E, width] slots of each expert, ascending, padded with -1."""
        return self.placement.logical_to_physical(width, dtype)

    @property
    def shares(self) -> NDArray[np.float64]:
        """[L, S] float64: fraction of its expert's tokens that each slot serves. Read-only view."""
        return view(self, lib.eplb_plan_shares(self._handle), self._shape, np.float64)

    @property
    def imbalance(self) -> NDArray[np.float64]:
        """[L] float64: max over mean of rank loads on the summed load; 1 is perfect. Read-only view."""
        return view(self, lib.eplb_plan_imbalance(self._handle), self._shape[:1], np.float64)

    @property
    def lower_bound(self) -> NDArray[np.float64]:
        """[L] float64: proved lower bound of the imbalance for this split. Read-only view."""
        return view(self, lib.eplb_plan_lower_bound(self._handle), self._shape[:1], np.float64)

    @property
    def moves(self) -> Moves:
        """Moves from the current placement that was given; zeros without one."""
        return moves_of(lib.eplb_plan_moves(self._handle))

    def lost_experts(self) -> list[NDArray[np.int64]]:
        """[L] arrays: experts that no live rank of the current placement holds, which must come from storage."""
        experts = np.arange(self._load.num_experts)
        if self._current is None:
            return [experts[:0] for _ in range(self._shape[0])]
        was, now = self._current.topology, self.topology
        sends = was.rank_alive != 0
        staying = min(was.num_ranks, now.num_ranks)
        sends[:staying] &= now.rank_alive[:staying] != 0  # those beyond leave, and send before they go
        held = self._current.physical_to_logical[:, np.repeat(sends, np.diff(was.first_slot))]
        return [np.setdiff1d(experts, row) for row in held]

    def moves_to(self, after: Placement | Plan | SavedPlan) -> Moves:
        """What it takes to go from this plan's placement to another.

        Source: ``eplb_placement_count_moves``.
        """
        return self.placement.moves_to(after)

    @property
    def policy(self) -> str:
        """The policy that was asked for."""
        return text(lib.eplb_plan_policy(self._handle))

    @property
    def reason(self) -> str:
        """Why the answer is what it is."""
        return text(lib.eplb_plan_reason(self._handle))

    @property
    def split(self) -> str:
        """``equal``, ``weighted`` or ``batch``."""
        return _SPLIT_NAMES[lib.eplb_plan_split(self._handle)]

    @property
    def num_groups(self) -> int:
        """Expert groups of node-limited routing that were asked for."""
        return lib.eplb_plan_num_groups(self._handle)

    @property
    def seconds(self) -> float:
        """Time the planner took."""
        return lib.eplb_plan_seconds(self._handle)

    @property
    def hash(self) -> int:
        """64-bit hash: equal plans have equal hashes on every host."""
        return lib.eplb_plan_hash(self._handle)

    @property
    def spilled(self) -> int:
        """Replicas outside their group's node, over all layers."""
        return lib.eplb_plan_spilled(self._handle)

    def check(self) -> None:
        """Raises InvalidError if placement, shares or certificate break an invariant.

        Source: ``eplb_plan_is_valid``.
        """
        error = new_error()
        raise_for(lib.eplb_plan_is_valid(self._handle, error), error)

    def rank_load(self) -> NDArray[np.float64]:
        """[L, G] float64: load of each rank on the load that was planned for."""
        return self.placement.rank_load(self._load, self.shares)

    def cross_node_tokens(self) -> NDArray[np.float64]:
        """[L] float64: tokens that must leave the node they start on, from the sources that were planned for."""
        return self.placement.cross_node_tokens(self._load, self.shares, self._sources)

    def to_dict(self) -> dict[str, Any]:
        """The plan as the document that the command reads and writes."""
        return document.of_plan(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes :meth:`to_dict` as JSON, whole or not at all; :func:`read_plan` and every command read it."""
        document.save(self.to_dict(), path)

    def _relative(self) -> NDArray[np.float64]:
        """[L, G]: load of each rank over its fair part, 1 for dead ranks."""
        return display.over_fair(self.rank_load(), self.topology)

    def heatmap(self, axes: Any = None) -> Any:
        """Draws the load of each live rank over its fair part (by speed) with matplotlib; returns the axes."""
        return display.heatmap(self._relative(), "rank", axes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and lib.eplb_plan_equal(self._handle, other._handle)

    def __hash__(self) -> int:
        return self.hash

    def __repr__(self) -> str:
        received = f", {self.moves.received} received" if self.has_current else ""
        return (
            f"Plan({self.policy}, {self.split}: imbalance mean {self.imbalance.mean():.4f}, worst "
            f"{self.imbalance.max():.4f}, bound {self.lower_bound.max():.4f}{received})"
        )

    def _repr_html_(self) -> str:
        layers, slots = self._shape
        figures: dict[str, object] = {
            "policy, split": f"{self.policy}, {self.split}",
            "size": f"{layers} layers, {self.placement.num_experts} experts in {slots} slots of "
            f"{self.topology.num_ranks} ranks on {self.topology.num_nodes} nodes",
            "imbalance (max / mean), mean": f"{self.imbalance.mean():.4f}",
            "imbalance, worst layer": f"{self.imbalance.max():.4f}",
            "proved lower bound of the worst": f"{self.lower_bound.max():.4f}",
            "reason": self.reason,
            "time": f"{1e3 * self.seconds:.2f} ms",
        }
        if self.has_current:
            moves = self.moves
            storage = f", {moves.lost} from storage" if moves.lost else ""
            figures["experts received"] = f"{moves.received}, {moves.cross_node} from another node{storage}"
        return display.html("Plan", figures, self._relative(), "rank")


def plan(
    load: Any,
    topology: Topology | None = None,
    *,
    num_ranks: SupportsIndex | None = None,
    num_slots: SupportsIndex | None = None,
    num_nodes: SupportsIndex = 1,
    rank_slots: Any = None,
    rank_speed: Any = None,
    dead: Iterable[SupportsIndex] = (),
    policy: str = "auto",
    split: str = "equal",
    num_groups: SupportsIndex | None = None,
    current: Placement | Plan | SavedPlan | Any = None,
    max_moves: SupportsIndex | None = None,
    max_moves_total: SupportsIndex | None = None,
    target: float = 0.0,
    spill: SupportsIndex = 0,
    cost: str | Mapping[str, SupportsIndex] = "tokens",
    tile: SupportsIndex = 128,
    sources: Any = None,
    threads: SupportsIndex = 1,
    work_limit: SupportsIndex = 0,
    time_budget: float = 0.0,
    progress: Callable[[int, int], Any] | None = None,
) -> Plan:
    """Plans every layer: how many replicas each expert gets, where they live, and what share each serves.

    Parameters
    ----------
    load : Load or [E], [L, E], [T, L, E]
        Tokens per expert, layer and window.
    topology : Topology, optional
        The ranks; or give the next six. Default: those of ``current``.
    num_ranks : int, optional
        Ranks.
    num_slots : int, optional
        Slots of all ranks together; default: one per expert. Where they do not divide by ranks, the first ranks get one
        more.
    num_nodes : int
        Nodes; rank g is on node ``g * num_nodes // num_ranks``.
    rank_slots : [G] integers, optional
        Slots of each rank, instead of ``num_slots``.
    rank_speed : [G] numbers, optional
        Relative speeds; only ratios count.
    dead : iterable of int
        Ranks that are dead: their slots stay empty.
    policy : str
        ``auto`` or another of :func:`policies`.
    split : {'equal', 'weighted', 'batch'}
        How tokens are divided among replicas: equally, by shares that the plan gives, or anew for every batch.
    num_groups : int, optional
        Expert groups of node-limited routing; 1: none. Default: those of a plan given as ``current``, else none.
    current : Placement, Plan, SavedPlan or [L, S], optional
        Where the weights are now; the plan then moves as few as it can. Its ranks and slots may be more or fewer: rank
        g stays rank g, slots that are cut off lose no weights, ranks that leave send theirs before they go.
    max_moves : int, optional
        Received experts allowed in each layer; needs ``current``. The command's ``--max-moves M``.
    max_moves_total : int, optional
        Received experts allowed over all layers; needs ``current``. The command's ``--max-moves total:M``.
    target : float
        Imbalance at which improving a layer stops, that of the sum or, where each window is balanced, their mean; 0 goes
        on as far as it pays.
    spill : int
        Replicas per layer allowed outside their group's node.
    cost : str or dict
        What a rank's time grows with: ``tokens``, ``tiles``, ``activated``, or whole weights of these, such as
        ``{'tokens': 1, 'activated': 300}``.
    tile : int
        Tokens of a tile.
    sources : [G, L, E], optional
        Tokens by source rank, on several nodes: for :meth:`Plan.cross_node_tokens`. Without ``current``
        nodes that are alike trade their contents so that the fewest tokens cross; with ``spill`` replicas go by it.
    threads : int
        Threads; the answer is the same for any number.
    work_limit : int
        Counted search steps per layer; 0 is the policy's default.
    time_budget : float
        Seconds, divided evenly over the layers; 0 is none. With it the answer depends on the clock.
    progress : callable, optional
        Called with (done, total); returning False cancels (:class:`CancelledError`). Without one, Ctrl-C is still seen
        between layers in the main thread.

    Returns
    -------
    Plan

    Source: ``eplb_plan_create``. The GIL is released while it runs.
    """
    request = Request(
        load,
        topology,
        num_ranks=num_ranks,
        num_slots=num_slots,
        num_nodes=num_nodes,
        rank_slots=rank_slots,
        rank_speed=rank_speed,
        dead=dead,
        policy=policy,
        split=split,
        num_groups=num_groups,
        current=current,
        max_moves=max_moves,
        max_moves_total=max_moves_total,
        target=target,
        spill=spill,
        cost=cost,
        tile=tile,
        sources=sources,
        threads=threads,
        work_limit=work_limit,
        time_budget=time_budget,
        progress=progress,
    )
    handle = request.run(lib.eplb_plan_create, ffi.new("eplb_plan **"), lib.eplb_plan_destroy)
    return Plan(handle, request.load, request.current, request.sources)

"""The frontier: what each layer reaches within 0, 1, 2 ... moves, to decide how many a better balance is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Mapping, SupportsIndex

import numpy as np

from eplb import arrays
from eplb.document import SavedPlan
from eplb.native import ffi, lib, view
from eplb.placement import Placement
from eplb.planning import Plan
from eplb.request import Request
from eplb.topology import Topology

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Frontier:
    """Imbalance against received experts, layer by layer. Made by :func:`frontier`. Immutable; threads may share it."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    @property
    def num_layers(self) -> int:
        """L."""
        return lib.eplb_frontier_num_layers(self._handle)

    def _points(self, layer: SupportsIndex, values: Any, dtype: Any) -> NDArray[Any]:
        number = arrays.layer(layer, self.num_layers)
        first = lib.eplb_frontier_first(self._handle)
        begin, end = first[number], first[number + 1]
        return view(self, values + begin, (end - begin,), dtype)

    def moves(self, layer: SupportsIndex) -> NDArray[np.int64]:
        """[points] int64, rising: experts received in that layer. Read-only view."""
        return self._points(layer, lib.eplb_frontier_moves(self._handle), np.int64)

    def imbalance(self, layer: SupportsIndex) -> NDArray[np.float64]:
        """[points] float64, falling: the imbalance reached with that many. Read-only view."""
        return self._points(layer, lib.eplb_frontier_imbalance(self._handle), np.float64)

    def within(self, max_moves: int) -> NDArray[np.float64]:
        """[L] float64: the imbalance of each layer with at most that many moves; NaN where fewer cannot serve."""
        reached = []
        for layer in range(self.num_layers):
            points = np.searchsorted(self.moves(layer), max_moves, side="right")
            reached.append(self.imbalance(layer)[points - 1] if points else np.nan)
        return np.array(reached)

    def __repr__(self) -> str:
        layers = range(self.num_layers)
        most = max(int(self.moves(layer)[-1]) for layer in layers)
        kept, best = (max(float(self.imbalance(layer)[point]) for layer in layers) for point in (0, -1))
        return f"Frontier({self.num_layers} layers: worst imbalance {kept:.4f} kept, {best:.4f} with {most} moves a layer)"


def frontier(
    load: Any,
    topology: Topology | None = None,
    *,
    current: Placement | Plan | SavedPlan | Any,
    num_ranks: SupportsIndex | None = None,
    num_slots: SupportsIndex | None = None,
    num_nodes: SupportsIndex = 1,
    rank_slots: Any = None,
    rank_speed: Any = None,
    dead: Iterable[SupportsIndex] = (),
    policy: str = "auto",
    split: str = "equal",
    num_groups: SupportsIndex | None = None,
    max_moves: SupportsIndex | None = None,
    target: float = 0.0,
    spill: SupportsIndex = 0,
    cost: str | Mapping[str, SupportsIndex] = "tokens",
    tile: SupportsIndex = 128,
    sources: Any = None,
    work_limit: SupportsIndex = 0,
    time_budget: float = 0.0,
) -> Frontier:
    """Explores what repairs of the current placement reach with how many moves.

    Parameters
    ----------
    load : Load or [E], [L, E], [T, L, E]
        Tokens per expert, layer and window.
    topology : Topology, optional
        The ranks; or give ``num_ranks`` and the like. Default: those of ``current``.
    current : Placement, Plan, SavedPlan or [L, S]
        Where the weights are now.
    num_ranks, num_slots, num_nodes, rank_slots, rank_speed, dead : optional
        As for :func:`plan`.
    policy, split, num_groups : optional
        As for :func:`plan`.
    max_moves : int, optional
        Most moves looked at.
    target, spill, cost, tile, sources, work_limit, time_budget : optional
        As for :func:`plan`.

    Returns
    -------
    Frontier

    Source: ``eplb_frontier_create``. The GIL is released while it runs.
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
        max_moves_total=None,
        target=target,
        spill=spill,
        cost=cost,
        tile=tile,
        sources=sources,
        threads=1,
        work_limit=work_limit,
        time_budget=time_budget,
        progress=None,
    )
    return Frontier(request.run(lib.eplb_frontier_create, ffi.new("eplb_frontier **"), lib.eplb_frontier_destroy))

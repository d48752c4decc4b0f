"""What a planning run is asked: keywords checked and put into the library's parameters, and kept alive while it runs."""

from __future__ import annotations

import threading
from typing import Any, Callable, Iterable, Mapping, SupportsIndex

import numpy as np

from eplb import arrays
from eplb.document import SPLITS
from eplb.errors import InvalidError
from eplb.load import Load, as_load
from eplb.native import ffi, keep_exception, lib, new_error, raise_for
from eplb.placement import Placement
from eplb.topology import Topology

_COSTS = ("tokens", "tiles", "activated")


class _Progress:
    """A Python callback behind the C one: an exception stops the planner, is kept here, and comes out of the call."""

    def __init__(self, function: Callable[[int, int], Any]) -> None:
        self.function = function
        self.exception: BaseException | None = None

    def call(self, done: int, total: int) -> bool:
        return self.function(done, total) is not False


def _poll() -> _Progress | None:
    """In the main thread, where signals arrive, a callback that does nothing lets Ctrl-C through between layers."""
    return _Progress(lambda done, total: True) if threading.current_thread() is threading.main_thread() else None


@ffi.def_extern(name="eplb_python_progress", error=False, onerror=keep_exception)
def _call_progress(context: Any, done: int, total: int) -> bool:
    progress: _Progress = ffi.from_handle(context)
    return progress.call(done, total)


def _of_current(current: Any, dead: list[SupportsIndex]) -> Topology | None:
    """The ranks of a current placement, those of `dead` lost as well; None for an array, which has none."""
    placement = getattr(current, "placement", current)
    if not isinstance(placement, Placement):
        return None
    topology = placement.topology
    lost = np.flatnonzero(topology.rank_alive == 0).tolist()
    return topology.with_dead(lost + dead) if dead else topology


def _as_topology(
    load: Load,
    topology: Topology | None,
    current: Any,
    num_ranks: SupportsIndex | None,
    num_slots: SupportsIndex | None,
    num_nodes: SupportsIndex,
    rank_slots: Any,
    rank_speed: Any,
    dead: Iterable[SupportsIndex],
) -> Topology:
    listed = list(dead)
    if topology is not None:
        if not (num_ranks is None and num_slots is None and num_nodes == 1 and rank_slots is None and not listed):
            raise InvalidError("give either a topology or num_ranks, num_slots and the like")
        return topology
    if rank_slots is not None:
        if num_slots is not None:
            raise InvalidError("give either num_slots or rank_slots")
        ranks = len(rank_slots) if num_ranks is None else num_ranks
        return Topology(ranks, num_nodes=num_nodes, rank_slots=rank_slots, rank_speed=rank_speed, dead=listed)
    if num_ranks is None and num_slots is None and num_nodes == 1 and rank_speed is None:
        kept = _of_current(current, listed)
        if kept is not None:
            return kept
    if num_ranks is None:
        raise InvalidError("give a topology, or num_ranks and num_slots")
    slots = load.num_experts if num_slots is None else num_slots
    return Topology.spread(num_ranks, slots, num_nodes=num_nodes, rank_speed=rank_speed, dead=listed)


def _fill_cost(params: Any, cost: str | Mapping[str, SupportsIndex], tile: SupportsIndex) -> None:
    weights: dict[str, SupportsIndex] = {cost: 1} if isinstance(cost, str) else dict(cost)
    unknown = sorted(set(weights) - set(_COSTS))
    if unknown:
        raise InvalidError(f"cost {unknown[0]!r}: expected tokens, tiles or activated")
    for name in _COSTS:
        setattr(params.cost, name, arrays.size(weights.get(name, 0), f"cost of {name}"))
    params.cost.tile_tokens = arrays.size(tile, "tile")


def _name(value: Any, keyword: str) -> str:
    """A name that C reads as a whole."""
    if not isinstance(value, str):
        raise TypeError(f"{keyword} is a {type(value).__name__}: expected a name")
    if "\0" in value:
        raise InvalidError(f"{keyword} {value!r}: expected a name without NUL")
    return value


def _limit(value: SupportsIndex | None, name: str) -> int:
    return lib.EPLB_UNLIMITED if value is None else arrays.size(value, name, 2**63 - 1)


def _as_placement(current: Any, topology: Topology, num_experts: int) -> Placement | None:
    """The placement of a Placement, Plan, SavedPlan or [L, S] array."""
    placement = getattr(current, "placement", current)
    if placement is None or isinstance(placement, Placement):
        return placement
    return Placement(topology, placement, num_experts)


class Request:
    """Load, ranks and parameters of :func:`eplb.plan` and :func:`eplb.frontier`."""

    def __init__(
        self,
        load: Any,
        topology: Topology | None,
        *,
        num_ranks: SupportsIndex | None,
        num_slots: SupportsIndex | None,
        num_nodes: SupportsIndex,
        rank_slots: Any,
        rank_speed: Any,
        dead: Iterable[SupportsIndex],
        policy: str,
        split: str,
        num_groups: SupportsIndex | None,
        current: Any,
        max_moves: SupportsIndex | None,
        max_moves_total: SupportsIndex | None,
        target: float,
        spill: SupportsIndex,
        cost: str | Mapping[str, SupportsIndex],
        tile: SupportsIndex,
        sources: Any,
        threads: SupportsIndex,
        work_limit: SupportsIndex,
        time_budget: float,
        progress: Callable[[int, int], Any] | None,
    ) -> None:
        self.load = as_load(load)
        self.topology = _as_topology(
            self.load, topology, current, num_ranks, num_slots, num_nodes, rank_slots, rank_speed, dead
        )
        for limit, keyword in ((max_moves, "max_moves"), (max_moves_total, "max_moves_total")):
            if _limit(limit, keyword) != lib.EPLB_UNLIMITED and current is None:
                raise InvalidError(f"{keyword} needs current: moves are counted from a placement")
        if _name(split, "split") not in SPLITS:
            raise InvalidError(f"split {split!r}: expected equal, weighted or batch")
        self.current = _as_placement(current, self.topology, self.load.num_experts)
        self.sources = None if sources is None else as_load(sources)
        for given in (load, sources):
            if isinstance(given, Load):  # an array was checked just now
                given._check()
        self._check_sources()
        self._policy = ffi.new("char[]", _name(policy, "policy").encode("utf-8", "replace"))
        self._progress = _Progress(progress) if progress is not None else _poll()
        self._context = ffi.NULL if self._progress is None else ffi.new_handle(self._progress)
        self._params = params = ffi.new("eplb_plan_params *")
        lib.eplb_plan_params_init(params, ffi.sizeof("eplb_plan_params"))
        params.policy = self._policy
        params.split = SPLITS[split]
        _fill_cost(params, cost, tile)
        groups = getattr(current, "num_groups", 1) if num_groups is None else num_groups
        params.num_groups = arrays.size(groups, "num_groups")
        params.current = ffi.NULL if self.current is None else self.current._handle
        params.max_moves_per_layer = _limit(max_moves, "max_moves")
        params.max_moves = _limit(max_moves_total, "max_moves_total")
        params.target_imbalance = target
        params.max_spill = arrays.size(spill, "spill")
        params.sources = ffi.NULL if self.sources is None else self.sources._handle
        params.num_threads = arrays.size(threads, "threads")
        params.work_limit = arrays.size(work_limit, "work_limit", 2**63 - 1)
        params.time_limit_seconds = time_budget
        params.progress = ffi.NULL if self._progress is None else lib.eplb_python_progress
        params.progress_context = self._context

    def _check_sources(self) -> None:
        """Sources mean something on several nodes, and have the shape of the plan."""
        if self.sources is None:
            return
        if self.topology.num_nodes == 1:
            raise InvalidError("sources need several nodes: on one no token crosses")
        shape = (self.sources.num_windows, self.sources.num_layers, self.sources.num_experts)
        expected = (self.topology.num_ranks, self.load.num_layers, self.load.num_experts)
        if shape != expected:
            raise InvalidError(f"sources have shape {list(shape)}: expected {list(expected)}, tokens by source rank")

    def run(self, create: Any, out: Any, destroy: Any) -> Any:
        """Calls an eplb_*_create; an exception of the progress callback comes out as it went in."""
        error = new_error()
        status = create(out, self.load._handle, self.topology._handle, self._params, ffi.NULL, error)
        handle = ffi.gc(out[0], destroy) if status == lib.EPLB_OK else None
        if self._progress is not None and self._progress.exception is not None:
            raise self._progress.exception
        raise_for(status, error)
        return handle

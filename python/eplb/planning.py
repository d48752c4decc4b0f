"""Planning: one function with every option of the command, and the plan it returns."""
from __future__ import annotations

from typing import Any, Callable

import numpy as np

from eplb import arrays
from eplb.errors import InvalidError
from eplb.model import Load, Moves, Placement, Topology, as_load, moves_of
from eplb.native import create, ffi, lib, new_error, raise_for, view

_SPLITS = {"equal": lib.EPLB_SPLIT_EQUAL, "weighted": lib.EPLB_SPLIT_WEIGHTED, "batch": lib.EPLB_SPLIT_BATCH}
_SPLIT_NAMES = {number: name for name, number in _SPLITS.items()}
_UNLIMITED = -1


class _Progress:
    """A Python callback behind the C one: remembers an exception and stops the planner with it."""

    def __init__(self, function: Callable[[int, int], Any]) -> None:
        self.function = function
        self.exception: BaseException | None = None

    def call(self, done: int, total: int) -> bool:
        try:
            return self.function(done, total) is not False
        except BaseException as exception:  # carried through C and raised again
            self.exception = exception
            return False


@ffi.def_extern(name="eplb_python_progress")
def _call_progress(context: Any, done: int, total: int) -> bool:
    return ffi.from_handle(context).call(done, total)


def policies() -> dict[str, str]:
    """Names of all policies and what each does."""
    return {
        ffi.string(lib.eplb_policy_name(index)).decode(): ffi.string(lib.eplb_policy_summary(index)).decode()
        for index in range(lib.eplb_policy_count())
    }


class Plan:
    """A placement, the shares its replicas serve, a certificate and the moves it costs. Made by :func:`plan`."""

    def __init__(self, handle: Any, load: Load) -> None:
        self._handle = handle
        self._load = load

    @property
    def placement(self) -> Placement:
        """The placement."""
        pointer_to = lib.eplb_plan_placement(self._handle)
        return Placement._adopt(create(lib.eplb_placement_copy, lib.eplb_placement_destroy, pointer_to))

    @property
    def _shape(self) -> tuple[int, int]:
        placement = lib.eplb_plan_placement(self._handle)
        return lib.eplb_placement_num_layers(placement), lib.eplb_placement_num_slots(placement)

    @property
    def physical_to_logical(self) -> np.ndarray:
        """[L, S] int32: expert in each slot. Read-only view."""
        placement = lib.eplb_plan_placement(self._handle)
        return view(self, lib.eplb_placement_physical_to_logical(placement), self._shape, np.int32)

    @property
    def shares(self) -> np.ndarray:
        """[L, S] float64: fraction of its expert's tokens that each slot serves. Read-only view."""
        return view(self, lib.eplb_plan_shares(self._handle), self._shape, np.float64)

    @property
    def imbalance(self) -> np.ndarray:
        """[L] float64: max over mean of rank loads on the summed load. Read-only view."""
        return view(self, lib.eplb_plan_imbalance(self._handle), self._shape[:1], np.float64)

    @property
    def lower_bound(self) -> np.ndarray:
        """[L] float64: proved lower bound of the imbalance for this split. Read-only view."""
        return view(self, lib.eplb_plan_lower_bound(self._handle), self._shape[:1], np.float64)

    @property
    def moves(self) -> Moves:
        """Moves from the current placement that was given; zeros without one."""
        return moves_of(lib.eplb_plan_moves(self._handle))

    @property
    def policy(self) -> str:
        """The policy that was asked for."""
        return ffi.string(lib.eplb_plan_policy(self._handle)).decode()

    @property
    def reason(self) -> str:
        """Why the answer is what it is."""
        return ffi.string(lib.eplb_plan_reason(self._handle)).decode()

    @property
    def split(self) -> str:
        """``equal``, ``weighted`` or ``batch``."""
        return _SPLIT_NAMES[lib.eplb_plan_split(self._handle)]

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

    def rank_load(self) -> np.ndarray:
        """[L, G] float64: load of each rank on the load that was planned for."""
        return self.placement.rank_load(self._load, self.shares)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and lib.eplb_plan_equal(self._handle, other._handle)

    def __hash__(self) -> int:
        return self.hash

    def __repr__(self) -> str:
        return (
            f"Plan({self.policy}, {self.split}: imbalance mean {self.imbalance.mean():.4f}, worst "
            f"{self.imbalance.max():.4f}, bound {self.lower_bound.max():.4f}, {self.moves.received} received)"
        )


def _as_topology(load: Load, topology: Topology | None, num_ranks: int | None, num_slots: int | None,
                 num_nodes: int) -> Topology:
    if topology is not None:
        if num_ranks is not None or num_slots is not None:
            raise InvalidError("give either a topology or num_ranks and num_slots")
        return topology
    if num_ranks is None:
        raise InvalidError("give a topology, or num_ranks and num_slots")
    slots = load.num_experts if num_slots is None else num_slots
    if num_ranks < 1:
        raise InvalidError(f"{num_ranks} ranks: expected 1 or more")
    rank_slots = [slots // num_ranks + (rank < slots % num_ranks) for rank in range(num_ranks)]
    return Topology(num_ranks, rank_slots=rank_slots, num_nodes=num_nodes)


def _fill_cost(params: Any, cost: str | dict[str, int], tile: int) -> None:
    weights = {cost: 1} if isinstance(cost, str) else dict(cost)
    unknown = set(weights) - {"tokens", "tiles", "activated"}
    if unknown:
        raise InvalidError(f"cost {sorted(unknown)[0]!r}: expected tokens, tiles or activated")
    params.cost.tokens = weights.get("tokens", 0)
    params.cost.tiles = weights.get("tiles", 0)
    params.cost.activated = weights.get("activated", 0)
    params.cost.tile_tokens = tile


def plan(
    load: Any,
    topology: Topology | None = None,
    *,
    num_ranks: int | None = None,
    num_slots: int | None = None,
    num_nodes: int = 1,
    policy: str = "auto",
    split: str = "equal",
    num_groups: int = 1,
    current: Placement | Plan | Any = None,
    max_moves_per_layer: int | None = None,
    max_moves: int | None = None,
    target: float = 0.0,
    spill: int = 0,
    cost: str | dict[str, int] = "tokens",
    tile: int = 128,
    sources: Any = None,
    threads: int = 1,
    work_limit: int = 0,
    time_budget: float = 0.0,
    progress: Callable[[int, int], Any] | None = None,
) -> Plan:
    """Plans every layer: how many replicas each expert gets, where they live, and what share each serves.

    Parameters
    ----------
    load : Load or [E], [L, E], [T, L, E]
        Tokens per expert, layer and window.
    topology : Topology, optional
        The ranks; or give ``num_ranks``, ``num_slots`` (total; default one slot per expert) and ``num_nodes``.
    policy : str
        ``auto`` or another of :func:`policies`.
    split : {'equal', 'weighted', 'batch'}
        How tokens are divided among replicas.
    num_groups : int
        Expert groups of node-limited routing.
    current : Placement, Plan or [L, S], optional
        Where the weights are now; the plan then moves as few as it can.
    max_moves_per_layer, max_moves : int, optional
        Received experts allowed, per layer and in all.
    target : float
        Imbalance at which improving a layer stops; 0 goes on as far as it pays.
    spill : int
        Replicas per layer allowed outside their group's node.
    cost : str or dict
        ``tokens``, ``tiles``, ``activated``, or weights of these.
    tile : int
        Tokens of a tile.
    sources : [G, L, E], optional
        Tokens by source rank.
    threads : int
        Threads; the answer is the same for any number.
    work_limit : int
        Counted search steps per layer; 0 is the policy's default.
    time_budget : float
        Seconds; 0 is none. With it the answer depends on the clock.
    progress : callable, optional
        Called with (done, total); returning False cancels.

    Returns
    -------
    Plan

    Source: ``eplb_plan_create``. The GIL is released while it runs.
    """
    load = as_load(load)
    ranks = _as_topology(load, topology, num_ranks, num_slots, num_nodes)
    if split not in _SPLITS:
        raise InvalidError(f"split {split!r}: expected equal, weighted or batch")
    params = ffi.new("eplb_plan_params *")
    lib.eplb_plan_params_init(params, ffi.sizeof("eplb_plan_params"))
    name = ffi.new("char[]", policy.encode())
    placement = _as_placement(current, ranks, load)
    source_load = None if sources is None else as_load(sources)
    watcher = None if progress is None else _Progress(progress)
    context = None if watcher is None else ffi.new_handle(watcher)
    params.policy = name
    params.split = _SPLITS[split]
    _fill_cost(params, cost, tile)
    params.num_groups = num_groups
    params.current = ffi.NULL if placement is None else placement._handle
    params.max_moves_per_layer = _UNLIMITED if max_moves_per_layer is None else max_moves_per_layer
    params.max_moves = _UNLIMITED if max_moves is None else max_moves
    params.target_imbalance = target
    params.max_spill = spill
    params.sources = ffi.NULL if source_load is None else source_load._handle
    params.num_threads = threads
    params.work_limit = work_limit
    params.time_limit_seconds = time_budget
    if context is not None:
        params.progress = lib.eplb_python_progress
        params.progress_context = context
    out = ffi.new("eplb_plan **")
    error = new_error()
    status = lib.eplb_plan_create(out, load._handle, ranks._handle, params, ffi.NULL, error)
    if watcher is not None and watcher.exception is not None:
        if status == lib.EPLB_OK:
            lib.eplb_plan_destroy(out[0])
        raise watcher.exception
    raise_for(status, error)
    return Plan(ffi.gc(out[0], lib.eplb_plan_destroy), load)


def _as_placement(current: Any, topology: Topology, load: Load) -> Placement | None:
    if current is None or isinstance(current, Placement):
        return current
    if isinstance(current, Plan):
        return current.placement
    return Placement(topology, arrays.as_int32(current, "current"), load.num_experts)

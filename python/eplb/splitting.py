"""Splits of one batch whose counts are known: exact re-split, decode assignment, levelling of the shared expert."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

import numpy as np

from eplb import arrays
from eplb.document import SavedPlan
from eplb.errors import InvalidError
from eplb.native import Handle, create, ffi, lib, new_error, pointer, raise_for
from eplb.placement import Placement, as_placement
from eplb.planning import Plan
from eplb.topology import Topology

if TYPE_CHECKING:
    from numpy.typing import NDArray


class BatchSplit(NamedTuple):
    """How one batch of one layer is split.

    ``quota`` [S]: tokens per slot. ``max_load``: the tokens of the rank where load / speed is largest, ``max_speed`` its
    speed (1 when all live ranks have the same). ``bound_load`` tokens belong to experts that live only on ranks of total
    speed ``bound_speed``: no split is better than their ratio. ``cross_rank``, ``cross_node``: tokens that leave their rank
    and their node, for splits by source.
    """

    quota: Any
    max_load: int
    max_speed: int
    bound_load: int
    bound_speed: int
    cross_rank: int
    cross_node: int

    @property
    def bound(self) -> float:
        """The certificate: no split has a largest load / speed below it."""
        return self.bound_load / self.bound_speed if self.bound_speed else 0.0


class Resplit(Handle):
    """The exact split of batches over one layer of a placement. Allocates nothing after creation; one thread at a time.

    Parameters
    ----------
    placement : Placement, Plan or SavedPlan
        Where the replicas are; live ranks and slots count.
    layer : int
        The layer.

    Source: ``eplb_resplit_create``.
    """

    def __init__(self, placement: Placement | Plan | SavedPlan, layer: SupportsIndex = 0) -> None:
        self._placement = as_placement(placement)
        self._layer = arrays.size(layer, "layer")
        self._handle = create(
            lib.eplb_resplit_create, lib.eplb_resplit_destroy, self._placement._handle, self._layer
        )
        self._experts, self._slots = self._placement.num_experts, self._placement.num_slots
        self._ranks = self._placement.topology.num_ranks
        self._result = ffi.new("eplb_resplit_result *")

    def _split(self, model: Any, quota: NDArray[np.int64]) -> BatchSplit:
        result = self._result
        return BatchSplit(
            arrays.like(model, quota),
            result.max_load,
            result.max_speed,
            result.bound_load,
            result.bound_speed,
            result.cross_rank,
            result.cross_node,
        )

    def _sources(self, source_load: Any) -> NDArray[np.int64]:
        return arrays.of_shape(
            arrays.as_int64(source_load, "source_load"), "source_load", (self._ranks, self._experts)
        )

    def solve(self, load: Any, *, warm: bool = False) -> BatchSplit:
        """Tokens per slot that minimise the largest rank load for the counts [E], exactly, in whole tokens.

        Parameters
        ----------
        load : [E]
            Tokens of each expert in this batch.
        warm : bool
            Start from the last solve; the optimum is the same, and so is the time, about.

        Source: ``eplb_resplit_solve``.
        """
        counts = arrays.of_shape(arrays.as_int64(load, "load"), "load", (self._experts,))
        quota = np.empty(self._slots, dtype=np.int64)
        error = new_error()
        status = lib.eplb_resplit_solve(
            self._handle, pointer(counts, "int64_t"), warm, pointer(quota, "int64_t"), self._result, error
        )
        raise_for(status, error)
        return self._split(load, quota)

    def solve_local(self, source_load: Any) -> BatchSplit:
        """The same for counts by source rank [G, E]; among the best splits one that keeps most tokens near their source.

        Source: ``eplb_resplit_solve_local``.
        """
        counts = self._sources(source_load)
        quota = np.empty(self._slots, dtype=np.int64)
        error = new_error()
        status = lib.eplb_resplit_solve_local(
            self._handle, pointer(counts, "int64_t"), pointer(quota, "int64_t"), self._result, error
        )
        raise_for(status, error)
        return self._split(source_load, quota)

    def by_source(self, source_load: Any, quota: Any) -> Any:
        """[G, S] tokens of each source to each slot: own rank first, then own node; columns sum to `quota`.

        Source: ``eplb_resplit_by_source``.
        """
        counts = self._sources(source_load)
        quotas = arrays.of_shape(arrays.as_int64(quota, "quota"), "quota", (self._slots,))
        part = np.empty((self._ranks, self._slots), dtype=np.int64)
        error = new_error()
        status = lib.eplb_resplit_by_source(
            self._handle,
            pointer(counts, "int64_t"),
            pointer(quotas, "int64_t"),
            pointer(part, "int64_t"),
            error,
        )
        raise_for(status, error)
        return arrays.like(source_load, part)

    @property
    def tight_experts(self) -> NDArray[np.bool_]:
        """[E] bool: experts of the last solve's certificate."""
        tight = np.empty(self._experts, dtype=np.uint8)
        lib.eplb_resplit_tight_experts(self._handle, pointer(tight, "uint8_t"))
        return tight.astype(bool)

    @property
    def tight_ranks(self) -> NDArray[np.bool_]:
        """[G] bool: ranks of the last solve's certificate."""
        tight = np.empty(self._ranks, dtype=np.uint8)
        lib.eplb_resplit_tight_ranks(self._handle, pointer(tight, "uint8_t"))
        return tight.astype(bool)

    def lplb(self, load: Any, steps: SupportsIndex = 5) -> tuple[NDArray[np.float64], bool]:
        """LPLB's answer to the same question, for comparison: ([S] share of each slot, whether its test passed).

        Source: ``eplb_resplit_lplb``.
        """
        counts = arrays.of_shape(arrays.as_int64(load, "load"), "load", (self._experts,))
        share = np.empty(self._slots)
        accepted = ffi.new("bool *")
        error = new_error()
        status = lib.eplb_resplit_lplb(
            self._handle,
            pointer(counts, "int64_t"),
            arrays.size(steps, "steps"),
            pointer(share, "double"),
            accepted,
            error,
        )
        raise_for(status, error)
        return share, bool(accepted[0])

    def activate(self, tokens: Any) -> tuple[Any, int]:
        """Decode: one replica per active expert, the fewest on the fullest rank: ([E] slot or -1, that fewest).

        Source: ``eplb_resplit_activate``.
        """
        counts = arrays.of_shape(arrays.as_int64(tokens, "tokens"), "tokens", (self._experts,))
        slot = np.empty(self._experts, dtype=np.int32)
        most = ffi.new("int32_t *")
        error = new_error()
        status = lib.eplb_resplit_activate(
            self._handle, pointer(counts, "int64_t"), pointer(slot, "int32_t"), most, error
        )
        raise_for(status, error)
        return arrays.like(tokens, slot), most[0]

    def __repr__(self) -> str:
        return f"Resplit(layer {self._layer}: {self._experts} experts, {self._slots} slots, {self._ranks} ranks)"


class Split(NamedTuple):
    """A batch split on every layer.

    Tokens per slot [L, S], largest rank load [L], its proved bound [L], and the experts of the certificate [L, E].
    """

    quota: Any
    max_load: NDArray[np.int64]
    bound: NDArray[np.float64]
    tight_experts: NDArray[np.bool_]


def _layers(counts: NDArray[np.int64], name: str, placement: Placement) -> NDArray[np.int64]:
    rows = counts.reshape(1, -1) if counts.ndim == 1 else counts
    return arrays.of_shape(rows, name, (placement.num_layers, placement.num_experts))


def resplit(load: Any, placement: Placement | Plan | SavedPlan) -> Split:
    """Splits the counts of one batch over a placement, exactly, on every layer.

    For batch after batch, one :class:`Resplit` per layer is faster.

    Parameters
    ----------
    load : [L, E] or [E]
        Tokens of each expert in this batch.
    placement : Placement, Plan or SavedPlan
        Where the replicas are.

    Returns
    -------
    Split

    Source: ``eplb_resplit_solve``.
    """
    where = as_placement(placement)
    rows = _layers(arrays.as_int64(load, "load"), "load", where)
    solvers = [Resplit(where, layer) for layer in range(where.num_layers)]
    splits = [solver.solve(row) for solver, row in zip(solvers, rows)]
    return Split(
        arrays.like(load, np.stack([split.quota for split in splits])),
        np.array([split.max_load for split in splits], dtype=np.int64),
        np.array([split.bound * split.max_speed for split in splits]),
        np.stack([solver.tight_experts for solver in solvers]),
    )


def assign_decode(tokens: Any, placement: Placement | Plan | SavedPlan) -> tuple[Any, NDArray[np.int32]]:
    """One replica per active expert, so that the fullest rank activates as few as possible, on every layer.

    Parameters
    ----------
    tokens : [L, E] or [E]
        Tokens of each expert in this batch; 0 is idle.
    placement : Placement, Plan or SavedPlan
        Where the replicas are.

    Returns
    -------
    slot, max_activated : [L, E] int32, [L] int32
        The replica of each expert, -1 for idle ones, and the activated replicas of the fullest rank.

    Source: ``eplb_resplit_activate``.
    """
    where = as_placement(placement)
    rows = _layers(arrays.as_int64(tokens, "tokens"), "tokens", where)
    answers = [Resplit(where, layer).activate(row) for layer, row in enumerate(rows)]
    slots = np.stack([slot for slot, _ in answers])
    return arrays.like(tokens, slots), np.array([most for _, most in answers], dtype=np.int32)


def _shared_params(batch_floor: SupportsIndex, price: float) -> Any:
    params = ffi.new("eplb_shared_params *")
    lib.eplb_shared_params_init(params, ffi.sizeof("eplb_shared_params"))
    params.batch_floor = arrays.size(batch_floor, "batch_floor", 2**63 - 1)
    if not 0 <= price <= 1e6:
        raise InvalidError(f"price is {price}: expected 0 to 1000000")
    params.price_per_mille = round(1000 * price)
    return params


def level_shared(
    topology: Topology, routed: Any, tokens: Any, *, batch_floor: SupportsIndex = 64, price: float = 0.0
) -> Any:
    """Levels the shared expert over all ranks, from global counts.

    Parameters
    ----------
    topology : Topology
        The ranks; each can run the shared expert.
    routed : [G]
        Token-expert pairs that are already bound for each rank.
    tokens : [G]
        Tokens that start on each rank.
    batch_floor : int
        Sources with fewer tokens keep theirs.
    price : float
        Tokens off the largest rank load that each remote token must save; 0 levels as far as it goes.

    Returns
    -------
    part : [G, G] int64
        Shared-expert tokens of each source (row) that run on each rank.

    Source: ``eplb_shared_level``.
    """
    ranks = topology.num_ranks
    bound = arrays.of_shape(arrays.as_int64(routed, "routed"), "routed", (ranks,))
    starting = arrays.of_shape(arrays.as_int64(tokens, "tokens"), "tokens", (ranks,))
    part = np.empty((ranks, ranks), dtype=np.int64)
    error = new_error()
    status = lib.eplb_shared_level(
        topology._handle,
        pointer(bound, "int64_t"),
        pointer(starting, "int64_t"),
        _shared_params(batch_floor, price),
        pointer(part, "int64_t"),
        ffi.NULL,
        error,
    )
    raise_for(status, error)
    return arrays.like(tokens, part)


def level_shared_own(
    topology: Topology,
    source: SupportsIndex,
    routed: Any,
    tokens: SupportsIndex,
    *,
    batch_floor: SupportsIndex = 64,
    price: float = 0.0,
) -> Any:
    """Levels one rank's shared-expert tokens from its own counts, without communication.

    Parameters
    ----------
    topology : Topology
        The ranks.
    source : int
        The rank.
    routed : [G]
        Token-expert pairs that it sends to each rank.
    tokens : int
        Its tokens.
    batch_floor : int
        Fewer tokens stay.
    price : float
        As for :func:`level_shared`.

    Returns
    -------
    part : [G] int64
        Its shared-expert tokens that run on each rank.

    Source: ``eplb_shared_level_own``.
    """
    ranks = topology.num_ranks
    bound = arrays.of_shape(arrays.as_int64(routed, "routed"), "routed", (ranks,))
    part = np.empty(ranks, dtype=np.int64)
    error = new_error()
    status = lib.eplb_shared_level_own(
        topology._handle,
        arrays.size(source, "source"),
        pointer(bound, "int64_t"),
        arrays.size(tokens, "tokens", 2**63 - 1),
        _shared_params(batch_floor, price),
        pointer(part, "int64_t"),
        ffi.NULL,
        error,
    )
    raise_for(status, error)
    return arrays.like(routed, part)

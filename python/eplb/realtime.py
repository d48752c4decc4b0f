"""Real-time planning: replicas of one layer for one batch, in microseconds, between gate and dispatch."""

from __future__ import annotations

from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from eplb import arrays
from eplb.native import Handle, create, ffi, lib, new_error, pointer, pointer_or_null, raise_for


class RealtimePlan(NamedTuple):
    """Replicas for one batch.

    ``replica_expert`` [G, spare]: expert in each spare slot, -1 unused. ``replica_tokens`` [G, spare]: tokens it serves.
    ``home_tokens`` [E]: tokens that each master keeps. ``num_replicas``: spare slots used, each a weight transfer.
    ``max_rank_tokens``: tokens of the fullest rank. ``total_tokens``: of the batch.
    """

    replica_expert: Any
    replica_tokens: Any
    home_tokens: Any
    num_replicas: int
    max_rank_tokens: int
    total_tokens: int


class Realtime(Handle):
    """A planner for batches: masters stay, spare slots are filled anew for each batch. One thread at a time.

    Planning allocates nothing in the library; what comes back is new for each batch.

    Parameters
    ----------
    num_experts, num_ranks : int
        E and G.
    spare_slots_per_rank : int
        Slots of each rank that are filled anew for each batch.
    home_rank : [E] integers, optional
        Rank of each master; default: expert e lives on rank ``e * num_ranks // num_experts``.

    Source: ``eplb_realtime_create``.
    """

    def __init__(
        self,
        num_experts: SupportsIndex,
        num_ranks: SupportsIndex,
        spare_slots_per_rank: SupportsIndex = 2,
        home_rank: Any = None,
    ) -> None:
        self.num_experts = arrays.size(num_experts, "num_experts")
        self.num_ranks = arrays.size(num_ranks, "num_ranks")
        self.spare_slots_per_rank = arrays.size(spare_slots_per_rank, "spare_slots_per_rank")
        homes = None if home_rank is None else arrays.as_int32(home_rank, "home_rank")
        if homes is not None:
            arrays.of_shape(homes, "home_rank", (self.num_experts,))
        params = ffi.new("eplb_realtime_params *")
        lib.eplb_realtime_params_init(params, ffi.sizeof("eplb_realtime_params"))
        params.num_experts = self.num_experts
        params.num_ranks = self.num_ranks
        params.spare_slots_per_rank = self.spare_slots_per_rank
        params.home_rank = pointer_or_null(homes, "int32_t")
        self._handle = create(lib.eplb_realtime_create, lib.eplb_realtime_destroy, params)

    def plan_batch(self, tokens: Any, target: float = 1.005) -> RealtimePlan:
        """Plans one batch.

        Parameters
        ----------
        tokens : [E]
            Tokens of each expert in this batch.
        target : float
            Fullest rank over mean to aim at; where the spare slots do not allow it, the least that is found.

        Returns
        -------
        RealtimePlan

        Source: ``eplb_realtime_plan_batch``.
        """
        counts = arrays.of_shape(arrays.as_int32(tokens, "tokens"), "tokens", (self.num_experts,))
        spare = np.empty((2, self.num_ranks, self.spare_slots_per_rank), dtype=np.int32)
        kept = np.empty(self.num_experts, dtype=np.int32)
        plan = ffi.new("eplb_realtime_plan *")
        plan.replica_expert = expert = pointer(spare[0], "int32_t")
        plan.replica_tokens = served = pointer(spare[1], "int32_t")
        plan.home_tokens = home = pointer(kept, "int32_t")
        error = new_error()
        raise_for(
            lib.eplb_realtime_plan_batch(self._handle, pointer(counts, "int32_t"), target, plan, error), error
        )
        del expert, served, home  # kept alive until here
        return RealtimePlan(
            arrays.like(tokens, spare[0]),
            arrays.like(tokens, spare[1]),
            arrays.like(tokens, kept),
            plan.num_replicas,
            plan.max_rank_tokens,
            plan.total_tokens,
        )

    def __repr__(self) -> str:
        return (
            f"Realtime({self.num_experts} experts, {self.num_ranks} ranks, {self.spare_slots_per_rank} spare slots each)"
        )

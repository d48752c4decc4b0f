"""Routing: tables that deliver a plan's shares, published so that readers never wait, and what a dispatch sends."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

import numpy as np

from eplb import arrays
from eplb.document import SavedPlan
from eplb.errors import InvalidError
from eplb.load import as_load
from eplb.native import Handle, create, ffi, lib, new_error, pointer, pointer_or_null, raise_for, view
from eplb.placement import Placement, as_placement, as_shares
from eplb.planning import Plan
from eplb.topology import Topology

if TYPE_CHECKING:
    from numpy.typing import NDArray

_RULES = {"quota": lib.EPLB_ROUTE_QUOTA, "nearest": lib.EPLB_ROUTE_NEAREST}


def _of_plan(value: Placement | Plan | SavedPlan, shares: Any) -> tuple[Placement, NDArray[np.float64] | None]:
    """Placement and shares: those of a plan unless others are given."""
    placement = as_placement(value, "plan")
    if shares is None and not isinstance(value, Placement):
        return placement, value.shares
    return placement, as_shares(shares, placement)


def _as_positions(position: Any, experts: int) -> NDArray[np.int32]:
    """Counters that the library advances in place: only the caller's own memory will do."""
    array = arrays.of_shape(arrays.as_numpy(position, "position"), "position", (experts,))
    if array.dtype != np.int32 or not array.flags.carray:
        raise InvalidError("position is not a writable, contiguous int32 array: expected what start() returns")
    return array


class RouteTable(Handle):
    """One layer's table, held unchanged until it is released: use it in a ``with`` block, once per batch.

    Made by :meth:`Router.table`. :attr:`block` is what ``eplb/route_select.h`` reads on a host or a device.
    """

    def __init__(self, router: Router, layer: SupportsIndex) -> None:
        epoch = ffi.new("uint64_t *")
        self._router = router
        self._block: Any = None
        self._layer = arrays.layer(layer, router.num_layers)
        self._block = lib.eplb_router_acquire(router._handle, self._layer, epoch)
        self.epoch: int = epoch[0]
        """Updates of this layer so far."""

    @property
    def block(self) -> NDArray[np.int32]:
        """The table as one flat int32 array. Read-only view; its content may change once the table is released."""
        return view(self, self._held(), (self._router.block_length,), np.int32)

    def _held(self) -> Any:
        if self._block is None:
            raise InvalidError("the table was released")
        return self._block

    def route(self, ids: Any, position: Any, out: NDArray[np.int32] | None = None) -> Any:
        """Slots of expert ids of any shape, int32, like `ids`; -1 for ids without one. Advances `position` [E].

        Source: ``eplb_route_ids``.
        """
        given = arrays.as_int32(ids, "ids")
        counters = _as_positions(position, self._router.num_experts)
        slots = np.empty(given.shape, dtype=np.int32) if out is None else out
        if slots.dtype != np.int32 or slots.shape != given.shape or not slots.flags.carray:
            raise InvalidError(f"out is not a writable, contiguous int32 array of shape {given.shape}")
        lib.eplb_route_ids(
            self._held(), pointer(counters, "int32_t"), pointer(given, "int32_t"), given.size, pointer(slots, "int32_t")
        )
        return arrays.like(ids, slots)

    def start(self, rank: SupportsIndex) -> NDArray[np.int32]:
        """Counters [E] that start differently on every rank: the first tokens of many ranks then keep the shares too.

        Source: ``eplb_route_start``.
        """
        position = np.zeros(self._router.num_experts, dtype=np.int32)
        lib.eplb_route_start(self._held(), arrays.rank(rank, self._router._num_ranks), pointer(position, "int32_t"))
        return position

    def release(self) -> None:
        """Lets the router reuse the table; a second time does nothing."""
        block, self._block = self._block, None
        if block is not None:
            lib.eplb_router_release(self._router._handle, self._layer, block)

    def __enter__(self) -> RouteTable:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def __del__(self) -> None:
        if getattr(self, "_block", None) is not None:
            self.release()


class Router(Handle):
    """Tables that send each expert's tokens to its replicas in the planned shares.

    One thread may update at a time while any number read. Blocks stay at fixed addresses.

    Parameters
    ----------
    topology : Topology
        The ranks; copied.
    num_layers, num_experts : int
        L and E.
    rule : {'quota', 'nearest'}
        ``quota``: every source splits by the shares. ``nearest``: the shares are kept over all sources together, and each
        source gets its own rank's part first, then its node's; needs ``source_rank``.
    source_rank : int, optional
        Rank whose tokens are routed; None: one table for all.
    row_limit : int
        Longest row of one expert; longer rows follow the shares more closely.

    Source: ``eplb_router_create``.
    """

    def __init__(
        self,
        topology: Topology,
        num_layers: SupportsIndex,
        num_experts: SupportsIndex,
        *,
        rule: str = "quota",
        source_rank: SupportsIndex | None = None,
        row_limit: SupportsIndex = 256,
    ) -> None:
        if rule not in _RULES:
            raise InvalidError(f"rule {rule!r}: expected quota or nearest")
        params = ffi.new("eplb_router_params *")
        lib.eplb_router_params_init(params, ffi.sizeof("eplb_router_params"))
        params.topology = topology._handle
        params.num_layers = self.num_layers = arrays.size(num_layers, "num_layers")
        params.num_experts = self.num_experts = arrays.size(num_experts, "num_experts")
        params.rule = _RULES[rule]
        params.source_rank = -1 if source_rank is None else arrays.size(source_rank, "source_rank")
        params.row_limit = arrays.size(row_limit, "row_limit")
        self._handle = create(lib.eplb_router_create, lib.eplb_router_destroy, params)
        self.rule = rule
        self._num_ranks = topology.num_ranks
        self._positions = np.zeros((self.num_layers, self.num_experts), dtype=np.int32)

    @classmethod
    def of(cls, plan: Plan | SavedPlan, **options: Any) -> Router:
        """A router of the plan's size that serves it."""
        placement = plan.placement
        router = cls(placement.topology, placement.num_layers, placement.num_experts, **options)
        router.update(plan)
        return router

    def update(
        self,
        plan: Plan | SavedPlan | Placement,
        shares: Any = None,
        *,
        sources: Any = None,
        first_layer: SupportsIndex = 0,
        num_layers: SupportsIndex | None = None,
    ) -> None:
        """Replaces the tables of some or all layers; all is checked and built before the first is published.

        While a reader still holds the table before the last one, :class:`BusyError` is raised and nothing is changed.

        Parameters
        ----------
        plan : Plan, SavedPlan or Placement
            What to serve, all layers of it.
        shares : [L, S], optional
            Shares other than the plan's; a bare placement is split equally without them.
        sources : [G, L, E], optional
            Tokens by source rank, for the rule ``nearest``; default: every live rank sends the same.
        first_layer, num_layers : int
            The layers to replace; default: all from ``first_layer`` on.

        Source: ``eplb_router_update``.
        """
        placement, rows = _of_plan(plan, shares)
        given = None if sources is None else as_load(sources)
        first = arrays.size(first_layer, "first_layer")
        count = max(self.num_layers - first, 0) if num_layers is None else arrays.size(num_layers, "num_layers")
        error = new_error()
        status = lib.eplb_router_update(
            self._handle,
            first,
            count,
            placement._handle,
            pointer_or_null(rows, "double"),
            ffi.NULL if given is None else given._handle,
            error,
        )
        raise_for(status, error)

    def update_quota(self, layer: SupportsIndex, plan: Plan | SavedPlan | Placement, quota: Any) -> None:
        """Replaces a layer's table by one made of whole tokens per slot: a batch's quotas, kept exactly.

        An expert whose quotas sum to at most ``row_limit`` gets them to the token, from counters at 0; a longer row is
        rounded.

        Parameters
        ----------
        layer : int
            The layer to replace.
        plan : Plan, SavedPlan or Placement
            What the slots hold; its shares play no part.
        quota : [S] int64
            Tokens of every slot, as :meth:`Resplit.solve` gives them, or one source's row of them.

        Source: ``eplb_router_update_quota``.
        """
        placement, _ = _of_plan(plan, None)
        tokens = arrays.as_int64(quota, "quota")
        if tokens.shape != (placement.num_slots,):
            raise InvalidError(f"quota has shape {tokens.shape}, expected ({placement.num_slots},)")
        error = new_error()
        status = lib.eplb_router_update_quota(
            self._handle, arrays.layer(layer, self.num_layers), placement._handle, pointer(tokens, "int64_t"), error
        )
        raise_for(status, error)

    def table(self, layer: SupportsIndex) -> RouteTable:
        """The current table of a layer, kept unchanged until it is released.

        Source: ``eplb_router_acquire``, ``eplb_router_release``.
        """
        return RouteTable(self, layer)

    def route(self, layer: SupportsIndex, ids: Any, position: Any = None) -> Any:
        """Slots of expert ids of any shape, int32, like `ids`.

        Without `position` the router's own counters are used and advanced: then one thread per layer at a time. Threads
        that route the same layer bring their own (:meth:`RouteTable.start`).
        """
        with self.table(layer) as table:
            return table.route(ids, self._positions[layer] if position is None else position)

    @property
    def block_length(self) -> int:
        """int32 in a block; all layers alike."""
        return lib.eplb_router_block_length(self._handle)

    def copy_block(self, layer: SupportsIndex, out: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """A consistent copy of a layer's table, into `out` if given: for device memory at a fixed address.

        Source: ``eplb_router_copy_block``.
        """
        block = np.empty(self.block_length, dtype=np.int32) if out is None else out
        if block.dtype != np.int32 or block.shape != (self.block_length,) or not block.flags.carray:
            raise InvalidError(f"out is not a writable, contiguous int32 array of shape ({self.block_length},)")
        lib.eplb_router_copy_block(self._handle, arrays.layer(layer, self.num_layers), pointer(block, "int32_t"))
        return block

    @property
    def worst_error(self) -> float:
        """Largest difference between a share that was asked for and the one served, over all layers."""
        return lib.eplb_router_worst_error(self._handle)

    def __repr__(self) -> str:
        return (
            f"Router({self.rule}: {self.num_layers} layers, {self.num_experts} experts, "
            f"shares kept within {self.worst_error:.4f})"
        )


class Traffic(NamedTuple):
    """What a dispatch sends, summed over tokens; a token goes to a rank once, however many of its slots are there."""

    tokens: int
    pairs: int
    rank_sends: int
    node_sends: int
    cross_rank: int
    cross_node: int


def traffic(topology: Topology, slots: Any, source: Any) -> tuple[Traffic, NDArray[np.int64]]:
    """What a dispatch of tokens to slots sends between ranks and nodes.

    Parameters
    ----------
    topology : Topology
        The ranks.
    slots : [N, K]
        The slots of each token, -1 for none.
    source : [N]
        The rank on which each token starts.

    Returns
    -------
    Traffic, matrix : Traffic, [G, G] int64
        Sums, and token copies from rank to rank.

    Source: ``eplb_traffic_add``.
    """
    chosen = arrays.as_int32(slots, "slots")
    if chosen.ndim != 2:
        raise InvalidError(f"slots has shape {chosen.shape}: expected [N, K]")
    starts = arrays.of_shape(arrays.as_int32(source, "source"), "source", chosen.shape[:1])
    sums = ffi.new("eplb_traffic *")
    matrix = np.zeros((topology.num_ranks, topology.num_ranks), dtype=np.int64)
    error = new_error()
    status = lib.eplb_traffic_add(
        topology._handle,
        pointer(chosen, "int32_t"),
        chosen.shape[0],
        arrays.size(chosen.shape[1], "K"),
        pointer(starts, "int32_t"),
        sums,
        pointer(matrix, "int64_t"),
        error,
    )
    raise_for(status, error)
    return Traffic(*(getattr(sums, name) for name in Traffic._fields)), matrix

"""eplb: expert-parallel load balancing for Mixture-of-Experts serving.

The drop-in for DeepSeek's module is :func:`rebalance_experts`; the planner is :func:`plan`.
"""

from eplb.deepseek import balanced_packing, rebalance_experts, replicate_experts
from eplb.document import SavedPlan, read_plan
from eplb.errors import (
    BusyError,
    CancelledError,
    EplbError,
    InfeasibleError,
    InternalError,
    InvalidError,
    LoadOverflowError,
    OutOfMemoryError,
    SystemRefusedError,
    UnsupportedError,
)
from eplb.frontier import Frontier, frontier
from eplb.load import Load
from eplb.native import lib as _lib
from eplb.native import text as _text
from eplb.placement import Moves, Placement, Problem
from eplb.planning import Plan, plan, policies
from eplb.realtime import Realtime, RealtimePlan
from eplb.routing import Router, RouteTable, Traffic, traffic
from eplb.splitting import BatchSplit, Resplit, Split, assign_decode, level_shared, level_shared_own, resplit
from eplb.tables import RepeatTable, repeat_table, sglang_static
from eplb.topology import Topology

__version__: str = _text(_lib.eplb_version())

__all__ = [
    "BatchSplit",
    "BusyError",
    "CancelledError",
    "EplbError",
    "Frontier",
    "InfeasibleError",
    "InternalError",
    "InvalidError",
    "Load",
    "LoadOverflowError",
    "Moves",
    "OutOfMemoryError",
    "Placement",
    "Plan",
    "Problem",
    "Realtime",
    "RealtimePlan",
    "RepeatTable",
    "Resplit",
    "RouteTable",
    "Router",
    "SavedPlan",
    "Split",
    "SystemRefusedError",
    "Topology",
    "Traffic",
    "UnsupportedError",
    "assign_decode",
    "balanced_packing",
    "frontier",
    "level_shared",
    "level_shared_own",
    "plan",
    "policies",
    "read_plan",
    "rebalance_experts",
    "repeat_table",
    "replicate_experts",
    "resplit",
    "sglang_static",
    "traffic",
]

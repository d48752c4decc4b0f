"""eplb: expert-parallel load balancing for Mixture-of-Experts serving.

The drop-in for DeepSeek's module is :func:`rebalance_experts`; the planner is :func:`plan`.
"""
from eplb.deepseek import balanced_packing, rebalance_experts, replicate_experts
from eplb.errors import (
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
from eplb.model import Load, Moves, Placement, Problem, Topology
from eplb.native import ffi as _ffi
from eplb.native import lib as _lib
from eplb.planning import Plan, plan, policies

__version__ = _ffi.string(_lib.eplb_version()).decode()

__all__ = [
    "CancelledError",
    "EplbError",
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
    "SystemRefusedError",
    "Topology",
    "UnsupportedError",
    "balanced_packing",
    "plan",
    "policies",
    "rebalance_experts",
    "replicate_experts",
]

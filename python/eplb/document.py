"""The plan document: placements and plans as the JSON that the command reads and writes, with its keys and its hash."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from eplb import arrays
from eplb.errors import InvalidError
from eplb.native import lib, pointer, pointer_or_null
from eplb.topology import Topology

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from eplb.placement import Placement
    from eplb.planning import Plan

VERSION = 1
SPLITS = {"equal": lib.EPLB_SPLIT_EQUAL, "weighted": lib.EPLB_SPLIT_WEIGHTED, "batch": lib.EPLB_SPLIT_BATCH}
_NEEDED = ("num_layers", "num_logical_experts", "num_slots", "num_ranks", "physical_to_logical_map")
_KEYS = {
    *_NEEDED,
    *("version", "policy", "reason", "split", "num_nodes", "num_groups", "rank_slots", "rank_nodes", "dead_ranks"),
    *("rank_speeds", "shares", "metrics", "moves", "spilled", "plan_seconds", "hash"),
}


class SavedPlan(NamedTuple):
    """What a plan document holds: enough to serve from, and to plan on from (``plan(current=saved)``)."""

    placement: Placement
    split: str
    shares: NDArray[np.float64] | None
    num_groups: int
    policy: str | None
    reason: str | None
    imbalance: NDArray[np.float64] | None
    lower_bound: NDArray[np.float64] | None
    hash: int


def _of_topology(topology: Topology) -> dict[str, Any]:
    """The ranks; what only repeats a default is left out."""
    ranks, nodes = topology.num_ranks, topology.num_nodes
    content: dict[str, Any] = {"num_ranks": ranks, "num_nodes": nodes}
    if topology.slots_per_rank is None:
        content["rank_slots"] = np.diff(topology.first_slot).tolist()
    if not np.array_equal(topology.rank_node, np.arange(ranks) * nodes // ranks):
        content["rank_nodes"] = topology.rank_node.tolist()
    if (topology.rank_speed != 1).any():
        content["rank_speeds"] = topology.rank_speed.tolist()
    if not topology.rank_alive.all():
        content["dead_ranks"] = np.flatnonzero(topology.rank_alive == 0).tolist()
    return content


def of_placement(placement: Placement) -> dict[str, Any]:
    """A placement alone, split equally."""
    return {
        "version": VERSION,
        "split": "equal",
        "num_layers": placement.num_layers,
        "num_logical_experts": placement.num_experts,
        "num_slots": placement.num_slots,
        **_of_topology(placement.topology),
        "physical_to_logical_map": placement.physical_to_logical.tolist(),
        "hash": f"{_hash(placement, 'equal', None):016x}",
    }


def of_plan(plan: Plan) -> dict[str, Any]:
    """A plan with its figures."""
    content = of_placement(plan.placement)
    content.update(policy=plan.policy, reason=plan.reason, split=plan.split, num_groups=plan.num_groups)
    if plan.split == "weighted":
        content["shares"] = plan.shares.tolist()
    content["metrics"] = {
        "imbalance": plan.imbalance.tolist(),
        "mean": float(plan.imbalance.mean()),
        "worst": float(plan.imbalance.max()),
        "lower_bound": plan.lower_bound.tolist(),
    }
    if content["num_nodes"] > 1:
        content["metrics"]["cross_node_tokens"] = plan.cross_node_tokens().tolist()
    if plan.has_current:
        moves = plan.moves
        content["moves"] = {"slots": moves.slots, "received": moves.received, "cross_node": moves.cross_node}
    if plan.spilled:
        content["spilled"] = plan.spilled
    content["plan_seconds"] = plan.seconds
    content["hash"] = f"{plan.hash:016x}"
    return content


def _hash(placement: Placement, split: str, shares: NDArray[np.float64] | None) -> int:
    return lib.eplb_plan_hash_of(
        lib.eplb_placement_topology(placement._handle),
        placement.num_layers,
        placement.num_experts,
        SPLITS[split],
        lib.eplb_placement_physical_to_logical(placement._handle),
        pointer_or_null(shares, "double"),
    )


def _count(content: dict[str, Any], key: str, default: int | None = None) -> int:
    value = content.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidError(f"{key} is {value!r}: expected a whole number")
    return value


def _check_keys(content: dict[str, Any]) -> None:
    if _count(content, "version", VERSION) != VERSION:
        raise InvalidError(f"version {content['version']}: this release reads version {VERSION}")
    unknown = sorted(set(content) - _KEYS)
    if unknown:
        raise InvalidError(f"unknown key {unknown[0]!r}")
    missing = [key for key in _NEEDED if key not in content]
    if missing:
        raise InvalidError(f"the key {missing[0]!r} is missing")


def _to_topology(content: dict[str, Any]) -> Topology:
    ranks, slots = _count(content, "num_ranks"), _count(content, "num_slots")
    rank_slots = content.get("rank_slots")
    if rank_slots is None and (ranks < 1 or slots % ranks):
        raise InvalidError(f"{slots} slots do not divide by {ranks} ranks, and there are no rank_slots")
    topology = Topology(
        ranks,
        slots // ranks if rank_slots is None else None,
        num_nodes=_count(content, "num_nodes", 1),
        rank_slots=rank_slots,
        rank_node=content.get("rank_nodes"),
        dead=content.get("dead_ranks", ()),
        rank_speed=content.get("rank_speeds"),
    )
    if topology.num_slots != slots:
        raise InvalidError(f"rank_slots add up to {topology.num_slots} slots: expected {slots}")
    return topology


def _row(metrics: dict[str, Any], key: str, layers: int) -> NDArray[np.float64] | None:
    if key not in metrics:
        return None
    return arrays.of_shape(arrays.as_floats(metrics[key], key, np.float64), key, (layers,))


def read(content: dict[str, Any]) -> SavedPlan:
    """A plan document as a SavedPlan; refuses unknown keys, sizes that disagree and content that its hash belies."""
    from eplb.placement import Placement, as_shares

    _check_keys(content)
    split = content.get("split", "equal")
    if split not in SPLITS:
        raise InvalidError(f"split {split!r}: expected equal, weighted or batch")
    placement = Placement(
        _to_topology(content), content["physical_to_logical_map"], _count(content, "num_logical_experts")
    )
    if placement.num_layers != _count(content, "num_layers"):
        raise InvalidError(f"the map has {placement.num_layers} layers: expected {content['num_layers']}")
    shares = as_shares(content.get("shares"), placement)
    if (split == "weighted") != (shares is not None):
        raise InvalidError(f"split is {split}, but shares are {'missing' if shares is None else 'given'}")
    number = _hash(placement, split, shares)
    if content.get("hash", f"{number:016x}") != f"{number:016x}":
        raise InvalidError(f"hash is {content['hash']}: expected {number:016x}, the hash of what the document holds")
    metrics = content.get("metrics", {})
    return SavedPlan(
        placement,
        split,
        shares,
        _count(content, "num_groups", 1),
        content.get("policy"),
        content.get("reason"),
        _row(metrics, "imbalance", placement.num_layers),
        _row(metrics, "lower_bound", placement.num_layers),
        number,
    )


def read_plan(path: str | os.PathLike[str]) -> SavedPlan:
    """Reads a plan document: what :meth:`Plan.save <eplb.Plan.save>` or ``eplb plan -o plan.json`` wrote.

    Parameters
    ----------
    path : str or path
        A JSON file in our own format; ``eplb convert`` makes one from engines' formats.

    Returns
    -------
    SavedPlan

    Source: ``eplb_plan_hash_of``, against which the file's hash is checked.
    """
    with open(path, encoding="utf-8") as file:
        try:
            content = json.load(file)
        except ValueError as problem:
            raise InvalidError(f"{os.fspath(path)}: {problem}") from None
    if not isinstance(content, dict):
        raise InvalidError(f"{os.fspath(path)}: expected one JSON object")
    try:
        return read(content)
    except InvalidError as problem:
        raise InvalidError(f"{os.fspath(path)}: {problem}") from None


def save(content: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Writes a document as JSON, whole or not at all."""
    folder, name = os.path.split(os.path.abspath(path))
    temporary = os.path.join(folder, f".{name}.{os.urandom(6).hex()}")
    try:
        with open(temporary, "x", encoding="utf-8") as file:
            json.dump(content, file)
            file.write("\n")
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise

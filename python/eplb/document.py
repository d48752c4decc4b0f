"""The plan document: placements and plans as the JSON that the command reads and writes, with its keys and its hash."""

from __future__ import annotations

import json
import math
import os
import re
from typing import TYPE_CHECKING, Any, Callable, Mapping, NamedTuple

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
_INT64 = 2**63 - 1


class _Key(NamedTuple):
    """What a key may hold: a kind of :data:`_KINDS`, the least and most of a whole number, and whether it must be there."""

    kind: str
    least: int = 0
    most: int = _INT64
    needed: bool = False


# The command's reader (tools/io/plan_json.c) has the same rules; a test runs both on the same broken documents.
_KEYS = {
    "version": _Key("integer", -_INT64, needed=True),
    "policy": _Key("text"),
    "reason": _Key("text"),
    "split": _Key("text"),
    "num_layers": _Key("integer", 1, lib.EPLB_MAX_LAYERS, needed=True),
    "num_logical_experts": _Key("integer", 1, lib.EPLB_MAX_EXPERTS, needed=True),
    "num_slots": _Key("integer", 1, lib.EPLB_MAX_SLOTS, needed=True),
    "num_ranks": _Key("integer", 1, lib.EPLB_MAX_RANKS, needed=True),
    "num_nodes": _Key("integer", 1, lib.EPLB_MAX_RANKS),
    "num_groups": _Key("integer", 0, lib.EPLB_MAX_EXPERTS),
    "rank_slots": _Key("integers"),
    "rank_nodes": _Key("integers"),
    "dead_ranks": _Key("integers"),
    "rank_speeds": _Key("integers"),
    "physical_to_logical_map": _Key("integer rows", needed=True),
    "shares": _Key("number rows"),
    "metrics": _Key("object"),
    "moves": _Key("object"),
    "spilled": _Key("integer"),
    "plan_seconds": _Key("number"),
    "hash": _Key("text"),
    "frontier": _Key("anything"),
}
_METRICS = {
    "imbalance": _Key("numbers"),
    "mean": _Key("number"),
    "worst": _Key("number"),
    "lower_bound": _Key("numbers"),
    "windows": _Key("integer", 1, lib.EPLB_MAX_WINDOWS),
    "window_mean": _Key("numbers"),
    "window_p95": _Key("numbers"),
    "before": _Key("object"),
    "cross_node_tokens": _Key("numbers"),
}
_BEFORE = {key: _Key("numbers") for key in ("imbalance", "window_mean", "window_p95")}
_MOVES = {
    **{key: _Key("integer", needed=True) for key in ("slots", "received", "cross_node")},
    "lost": _Key("integer"),
    "lost_experts": _Key("anything"),
}


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -_INT64 - 1 <= value <= _INT64


def _is_number(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value) or _is_integer(value)


def _is_list(value: Any, of: Callable[[Any], bool]) -> bool:
    return isinstance(value, (list, tuple)) and all(map(of, value))


def _is_matrix(value: Any, of: Callable[[Any], bool]) -> bool:
    return _is_list(value, lambda row: _is_list(row, of))


_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "integer": ("a whole number", _is_integer),
    "number": ("a finite number", _is_number),
    "text": ("text", lambda value: isinstance(value, str)),
    "integers": ("a list of whole numbers", lambda value: _is_list(value, _is_integer)),
    "numbers": ("a list of finite numbers", lambda value: _is_list(value, _is_number)),
    "integer rows": ("a list of lists of whole numbers", lambda value: _is_matrix(value, _is_integer)),
    "number rows": ("a list of lists of finite numbers", lambda value: _is_matrix(value, _is_number)),
    "object": ("an object", lambda value: isinstance(value, dict)),
    "anything": ("anything", lambda value: True),
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

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same placement, split and shares for the same ranks and groups; figures play no part."""
        return (
            isinstance(other, SavedPlan)
            and (self.hash, self.num_groups, self.split) == (other.hash, other.num_groups, other.split)
            and self.placement == other.placement
            and np.array_equal(self.shares if self.shares is not None else (), other.shares if other.shares is not None else ())
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return self.hash


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
        content["moves"] = {key: getattr(moves, key) for key in ("slots", "received", "cross_node", "lost")}
        if moves.lost:
            content["moves"]["lost_experts"] = [experts.tolist() for experts in plan.lost_experts()]
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


def _check_object(content: Any, keys: Mapping[str, _Key], where: str = "") -> None:
    """Refuses an object with unknown or missing keys, or values of another kind than theirs."""
    for key in content:
        if key not in keys:
            raise InvalidError(f"unknown key {where + str(key)!r}")
    for key, rule in keys.items():
        if key not in content:
            if rule.needed:
                raise InvalidError(f"the key {where + key!r} is missing")
            continue
        value = content[key]
        kind, fits = _KINDS[rule.kind]
        if not fits(value):
            raise InvalidError(f"{where}{key} is {repr(value)[:80]}: expected {kind}")
        if rule.kind == "integer" and not rule.least <= value <= rule.most:
            raise InvalidError(f"{where}{key} is {value}: expected {rule.least} to {rule.most}")


def _check(content: dict[str, Any]) -> None:
    """Refuses what is no plan document; whether its parts fit together is seen later."""
    if _is_integer(content.get("version")) and content["version"] != VERSION:  # first: it may have other keys
        raise InvalidError(f"version {content['version']}: this release reads version {VERSION}")
    _check_object(content, _KEYS)
    if content.get("plan_seconds", 0) < 0:
        raise InvalidError(f"plan_seconds is {content['plan_seconds']}: expected at least 0")
    if "hash" in content and not re.fullmatch("[0-9a-f]{16}", content["hash"]):
        raise InvalidError(f"hash is {content['hash'][:80]!r}: expected 16 hexadecimal digits")
    metrics = content.get("metrics", {})
    _check_object(metrics, _METRICS, "metrics.")
    _check_object(metrics.get("before", {}), _BEFORE, "metrics.before.")
    if "moves" in content:
        _check_object(content["moves"], _MOVES, "moves.")


def _check_lengths(metrics: dict[str, Any], layers: int) -> None:
    for rows, where in ((metrics, "metrics."), (metrics.get("before", {}), "metrics.before.")):
        for key, values in rows.items():
            if isinstance(values, (list, tuple)) and len(values) != layers:
                raise InvalidError(f"{where}{key} has {len(values)} entries: expected {layers}")


def _rows(content: dict[str, Any], key: str) -> Any:
    """A list of lists as it is, if all are as long."""
    rows = content[key]
    if len({len(row) for row in rows}) > 1:
        raise InvalidError(f"{key} has rows of different lengths: {sorted({len(row) for row in rows})}")
    return rows


def _to_topology(content: dict[str, Any]) -> Topology:
    ranks, slots = content["num_ranks"], content["num_slots"]
    rank_slots = content.get("rank_slots")
    if rank_slots is None and slots % ranks:
        raise InvalidError(f"{slots} slots do not divide by {ranks} ranks, and there are no rank_slots")
    topology = Topology(
        ranks,
        slots // ranks if rank_slots is None else None,
        num_nodes=content.get("num_nodes", 1),
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
    from eplb.placement import Placement, as_shares, check_shares

    _check(content)
    split = content.get("split", "equal")
    if split not in SPLITS:
        raise InvalidError(f"split {split!r}: expected equal, weighted or batch")
    placement = Placement(
        _to_topology(content), _rows(content, "physical_to_logical_map"), content["num_logical_experts"]
    )
    if placement.num_layers != content["num_layers"]:
        raise InvalidError(f"the map has {placement.num_layers} layers: expected {content['num_layers']}")
    shares = as_shares(_rows(content, "shares") if "shares" in content else None, placement)
    if (split == "weighted") != (shares is not None):
        raise InvalidError(f"split is {split}, but shares are {'missing' if shares is None else 'given'}")
    if shares is not None:
        check_shares(shares, placement)
    groups = content.get("num_groups", 1)
    if groups > 1 and placement.num_experts % groups:
        raise InvalidError(f"num_groups is {groups}: {placement.num_experts} experts do not divide into them")
    number = _hash(placement, split, shares)
    if content.get("hash", f"{number:016x}") != f"{number:016x}":
        raise InvalidError(f"hash is {content['hash']}: expected {number:016x}, the hash of what the document holds")
    metrics = content.get("metrics", {})
    _check_lengths(metrics, placement.num_layers)
    return SavedPlan(
        placement,
        split,
        shares,
        groups,
        content.get("policy"),
        content.get("reason"),
        _row(metrics, "imbalance", placement.num_layers),
        _row(metrics, "lower_bound", placement.num_layers),
        number,
    )


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; a key that comes twice is an error."""
    content = dict(pairs)
    if len(content) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"duplicate key {next(key for key in keys if keys.count(key) > 1)!r}")
    return content


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
            content = json.load(file, object_pairs_hook=_once)
        except (ValueError, RecursionError) as problem:
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

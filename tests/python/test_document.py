"""The plan document: round trips, and the same file as the command's."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import eplb

COMMAND = pathlib.Path(sys.executable).parent / "eplb"


def command(*words: object, expect: int = 0) -> str:
    done = subprocess.run([str(COMMAND), *map(str, words)], capture_output=True, text=True)
    assert done.returncode == expect, done.stderr
    return done.stdout


CASES: dict[str, dict[str, Any]] = {
    "plain": {"num_ranks": 8, "num_slots": 40},
    "weighted": {"num_ranks": 8, "num_slots": 40, "split": "weighted"},
    "nodes": {"num_ranks": 8, "num_slots": 40, "num_nodes": 2, "num_groups": 4},
    "uneven": {"rank_slots": [10] * 3 + [6], "rank_speed": [1, 1, 0.5, 1]},
    "dead": {"num_ranks": 8, "num_slots": 48, "dead": [3]},
    "strange nodes": {"topology": eplb.Topology(4, 10, num_nodes=2, rank_node=[1, 0, 1, 0])},
}


@pytest.mark.parametrize("name", CASES)
def test_round_trip(name: str, load: np.ndarray, tmp_path: pathlib.Path) -> None:
    plan = eplb.plan(load, **CASES[name])
    plan.save(tmp_path / "plan.json")
    saved = eplb.read_plan(tmp_path / "plan.json")
    assert saved.placement == plan.placement and saved.placement.topology == plan.topology
    assert (saved.split, saved.hash, saved.policy, saved.reason) == (plan.split, plan.hash, plan.policy, plan.reason)
    assert saved.num_groups == max(plan.num_groups, 1)
    for ours, theirs in ((saved.imbalance, plan.imbalance), (saved.lower_bound, plan.lower_bound)):
        assert ours is not None and ours.tolist() == theirs.tolist()
    assert (saved.shares is None) == (plan.split != "weighted")
    if plan.split == "equal":
        assert eplb.plan(load, plan.topology, current=saved, max_moves=0).placement == plan.placement
    assert "valid" in command("verify", tmp_path / "plan.json")
    assert eplb.Placement.from_dict(plan.placement.to_dict()) == plan.placement


def test_files_of_the_command(load: np.ndarray, tmp_path: pathlib.Path) -> None:
    np.save(tmp_path / "load.npy", load)
    for split in ("equal", "weighted"):
        path = tmp_path / f"{split}.json"
        command("plan", tmp_path / "load.npy", "--ranks", 8, "--slots", 40, "--split", split, "-o", path)
        plan = eplb.plan(load, num_ranks=8, num_slots=40, split=split)
        saved = eplb.read_plan(path)
        assert saved.placement == plan.placement and saved.hash == plan.hash
        theirs, ours = json.loads(path.read_text()), plan.to_dict()
        for document in (theirs, ours):
            document.pop("plan_seconds")
        assert theirs == ours


@pytest.mark.parametrize("word, keyword", [("2", {"max_moves": 2}), ("total:5", {"max_moves_total": 5})])
def test_limits_of_moves_mean_the_same(word: str, keyword: Any, load: np.ndarray, tmp_path: pathlib.Path) -> None:
    old = eplb.Placement.initial(eplb.Topology(8, 5), 6, 32)
    old.save(tmp_path / "old.json")
    np.save(tmp_path / "load.npy", load)
    command(
        *("plan", tmp_path / "load.npy", "--current", tmp_path / "old.json", "--max-moves", word),
        *("-o", tmp_path / "new.json"),
    )
    plan = eplb.plan(load, current=old, **keyword)
    assert eplb.read_plan(tmp_path / "new.json").hash == plan.hash
    assert 5 <= plan.moves.received <= (12 if word == "2" else 5)


def test_saved_plans_compare(load: np.ndarray, tmp_path: pathlib.Path) -> None:
    for name, slots in (("a", 40), ("b", 40), ("c", 48)):
        eplb.plan(load, num_ranks=8, num_slots=slots, split="weighted").save(tmp_path / name)
    one, same, other = (eplb.read_plan(tmp_path / name) for name in "abc")
    assert one == same and not one != same and one != other and len({one, same, other}) == 2


def test_moves_are_written_with_a_current_placement(load: np.ndarray) -> None:
    old = eplb.Placement.initial(eplb.Topology(8, 5), 6, 32)
    plan = eplb.plan(load, old.topology, current=old)
    assert plan.to_dict()["moves"] == {key: getattr(plan.moves, key) for key in ("slots", "received", "cross_node", "lost")}
    assert "moves" not in eplb.plan(load, old.topology).to_dict()


def test_lost_experts_are_listed(load: np.ndarray, tmp_path: pathlib.Path) -> None:
    old = eplb.Placement.initial(eplb.Topology(8, 5), 6, 32)
    plan = eplb.plan(load, current=old, dead=[3])
    held = {int(e) for rank, row in enumerate(old.physical_to_logical[0].reshape(8, 5)) if rank != 3 for e in row}
    assert [sorted(set(range(32)) - held)] * 6 == [experts.tolist() for experts in plan.lost_experts()]
    moves = plan.to_dict()["moves"]
    assert moves["lost"] == plan.moves.lost > 0
    assert moves["lost_experts"] == [experts.tolist() for experts in plan.lost_experts()]
    plan.save(tmp_path / "plan.json")
    assert eplb.read_plan(tmp_path / "plan.json").hash == plan.hash
    assert [experts.size for experts in eplb.plan(load, num_ranks=8, num_slots=40).lost_experts()] == [0] * 6


def test_ranks_of_a_current_placement_come_and_go(load: np.ndarray) -> None:
    old = eplb.plan(load, num_ranks=8, num_slots=48)
    fewer = eplb.plan(load, num_ranks=7, num_slots=42, current=old)
    assert fewer.moves == old.moves_to(fewer) and fewer.moves.lost == 0
    smaller = eplb.plan(load, num_ranks=8, num_slots=40, current=old, max_moves=0)
    assert smaller.moves.received == 0
    smaller.placement.check()
    held = [[set(row) for row in layer.reshape(8, 6)] for layer in old.physical_to_logical]
    for layer, row in zip(held, smaller.physical_to_logical):
        assert all(set(now) <= before for now, before in zip(row.reshape(8, 5), layer))


def test_groups_of_a_current_plan_stay(load: np.ndarray, tmp_path: pathlib.Path) -> None:
    old = eplb.plan(load, num_ranks=8, num_slots=40, num_nodes=2, num_groups=4)
    old.save(tmp_path / "old.json")
    for current in (old, eplb.read_plan(tmp_path / "old.json")):
        assert eplb.plan(load, current=current).num_groups == 4
        assert eplb.plan(load, current=current, num_groups=1).num_groups == 1
    assert eplb.plan(load, current=old.placement).num_groups == 1
    assert eplb.plan(load, num_ranks=8, num_slots=40).num_groups == 1


def changed(document: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {key: value for key, value in {**document, **changes}.items() if value is not None}


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"version": 2}, "version 2: this release reads version 1"),
        ({"colour": "red"}, "unknown key 'colour'"),
        ({"num_slots": None}, "'num_slots' is missing"),
        ({"num_slots": "40"}, "num_slots is '40'"),
        ({"num_slots": 41}, "41 slots do not divide by 8"),
        ({"num_slots": 48}, r"expected \[L, 48\]"),
        ({"num_layers": 5}, "6 layers: expected 5"),
        ({"num_logical_experts": 31}, "31"),
        ({"split": "odd"}, "split 'odd'"),
        ({"split": "weighted"}, "shares are missing"),
        ({"shares": [[0.5] * 40] * 6}, "shares are given"),
        ({"hash": "0000000000000000"}, "hash is 0000000000000000: expected"),
        ({"rank_slots": [5] * 7 + [4]}, "add up to 39"),
        ({"dead_ranks": [8]}, "dead rank 8"),
        ({"metrics": {"imbalance": [1.0]}}, r"metrics.imbalance has 1 entries: expected 6"),
    ],
)
def test_broken_documents(load: np.ndarray, tmp_path: pathlib.Path, changes: dict[str, Any], message: str) -> None:
    document = eplb.plan(load, num_ranks=8, num_slots=40).to_dict()
    (tmp_path / "plan.json").write_text(json.dumps(changed(document, **changes)))
    with pytest.raises(eplb.InvalidError, match=message) as caught:
        eplb.read_plan(tmp_path / "plan.json")
    assert "plan.json: " in str(caught.value)


# Values that a key of a plan document may not have.
WRONG_SIZES: list[Any] = [0, -1, 2**31, 2**70, 1.5, True, "8", [8], {}]
WRONG_RANKS: list[Any] = [1, [1], ["1"] * 8, [-1] * 8, [1.5] * 8, [2**40] * 8]
WRONG: dict[str, list[Any]] = {
    "version": ["1", 1.0, True, 0, [1]],
    **{key: WRONG_SIZES for key in ("num_layers", "num_slots", "num_ranks", "num_nodes", "num_logical_experts")},
    "num_groups": [-7, 1.5, "4", [], True, 2**40, 5],
    **{key: [[], 7, {}, True] for key in ("policy", "reason", "split")},
    "hash": [[], 7, "", "xyz", "0" * 15, "A" * 16, " " + "0" * 15],
    "metrics": [
        *([], 3, "x", {"foo": 3}, {"imbalance": 1}, {"imbalance": [1.0]}, {"mean": "1"}, {"imbalance": ["1"] * 6}),
        *({"lower_bound": [[1]] * 6}, {"windows": 0}, {"windows": 1.5}, {"window_mean": [1.0]}),
        *({"before": []}, {"before": {"foo": 1}}, {"before": {"imbalance": [1.0]}}),
    ],
    "moves": [
        *([], 3, {}, {"slots": 1}, {"slots": 1, "received": 1, "cross_node": -1}),
        *({"slots": 1, "received": 1, "cross_node": 0, "lost": -1}, {"slots": 1, "received": 1, "cross_node": 0, "away": 0}),
    ],
    "plan_seconds": [-1.0, "1", [], True],
    "spilled": [-1, 1.5, "1"],
    "rank_slots": [8, [5] * 7, ["5"] * 8, [5.0] * 8, [[5]] * 8, [True] * 8, [2**40] * 8, [-5] * 8],
    "rank_nodes": WRONG_RANKS,
    "rank_speeds": WRONG_RANKS,
    "dead_ranks": [1, ["1"], [-1], [8], [1.0], [[1]]],
    "physical_to_logical_map": [
        *(1, [], "x", [[]] * 6, [1] * 6, [[0] * 40] * 5, [[0] * 39] * 6, [[0] * 40] * 5 + [[0] * 39], [["0"] * 40] * 6),
        *([[0.0] * 40] * 6, [[2**40] * 40] * 6, [[[0]] * 40] * 6, [[True] * 40] * 6),
    ],
    "shares": [
        *(1, [], [[]] * 6, [[0.5] * 40] * 5, [["1"] * 40] * 6, [[-1.0] * 40] * 6, [[0.0] * 40] * 6, [[True] * 40] * 6),
    ],
}
NEEDED = ("version", "num_layers", "num_logical_experts", "num_slots", "num_ranks", "physical_to_logical_map")
MALFORMED: list[dict[str, Any]] = [
    *({key: None} for key in NEEDED),
    *({key: value} for key, values in WRONG.items() if key != "shares" for value in values),
    *({"split": "weighted", "shares": value} for value in WRONG["shares"]),
]


@pytest.mark.parametrize("changes", MALFORMED, ids=lambda changes: repr(changes)[:50])
def test_malformed_as_the_command_sees_it(load: np.ndarray, tmp_path: pathlib.Path, changes: dict[str, Any]) -> None:
    document = eplb.plan(load, num_ranks=8, num_slots=40).to_dict()
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({key: value for key, value in document.items() if key != "hash"}))
    assert eplb.read_plan(path).placement.num_slots == 40
    broken = changed({key: value for key, value in document.items() if key != "hash" or "hash" in changes}, **changes)
    path.write_text(json.dumps(broken))
    assert subprocess.run([str(COMMAND), "verify", str(path)], capture_output=True).returncode != 0
    with pytest.raises(eplb.InvalidError):
        eplb.read_plan(path)
    with pytest.raises(eplb.InvalidError):
        eplb.Placement.from_dict(broken)


@pytest.mark.parametrize(
    "old, new", [("{", '{"version": 1, '), ('"mean"', '"mean": 1.0, "mean"'), ('"mean": ', '"mean": NaN, "worst": ')]
)
def test_malformed_json(load: np.ndarray, tmp_path: pathlib.Path, old: str, new: str) -> None:
    path = tmp_path / "plan.json"
    text = json.dumps(eplb.plan(load, num_ranks=8, num_slots=40).to_dict())
    path.write_text(text.replace(old, new, 1))
    assert subprocess.run([str(COMMAND), "verify", str(path)], capture_output=True).returncode != 0
    with pytest.raises(eplb.InvalidError, match="plan.json: "):
        eplb.read_plan(path)


def test_plans_with_more_of_the_command(load: np.ndarray, tmp_path: pathlib.Path) -> None:
    """Windows and a frontier put keys of their own into the document."""
    np.save(tmp_path / "load.npy", np.stack([load, load[:, ::-1]]))
    eplb.Placement.initial(eplb.Topology(8, 5), 6, 32).save(tmp_path / "old.json")
    words = ("plan", tmp_path / "load.npy", "--current", tmp_path / "old.json", "--policy", "equal")
    command(*words, "-o", tmp_path / "new.json")
    (tmp_path / "frontier.json").write_text(command(*words, "--frontier", "--json"))
    assert json.loads((tmp_path / "frontier.json").read_text())["frontier"]
    for name in ("new.json", "frontier.json"):
        assert eplb.read_plan(tmp_path / name).placement.num_layers == 6


@pytest.mark.parametrize("text", ["", "[]", "{", '{"version": 1'])
def test_not_a_document(tmp_path: pathlib.Path, text: str) -> None:
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(eplb.InvalidError, match="plan.json"):
        eplb.read_plan(tmp_path / "plan.json")
    with pytest.raises(FileNotFoundError):
        eplb.read_plan(tmp_path / "nowhere.json")


def test_a_file_is_whole_or_absent(load: np.ndarray, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = eplb.plan(load, num_ranks=8)
    plan.save(tmp_path / "plan.json")
    before = (tmp_path / "plan.json").read_bytes()

    def full(*arguments: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(json, "dump", full)
    with pytest.raises(OSError, match="disk full"):
        plan.save(tmp_path / "plan.json")
    assert os.listdir(tmp_path) == ["plan.json"] and (tmp_path / "plan.json").read_bytes() == before

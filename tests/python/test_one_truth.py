"""What Python says of the library follows from the public headers, and what the command offers, Python offers."""

from __future__ import annotations

import ast
import inspect
import pathlib
import re
import sys
from typing import Any, Iterator

import pytest

import eplb
from eplb import document, errors, load, native, routing

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = sorted((ROOT / "include" / "eplb").glob("*.h"))
SOURCES = sorted((ROOT / "python" / "eplb").glob("*.py"))

sys.path.insert(0, str(ROOT / "python"))
import build_ffi  # noqa: E402

# Public functions that the package does without, and why.
NOT_WRAPPED = {
    "eplb_status_name": "statuses are exception classes",
    "eplb_load_copy": "a Load is immutable",
    "eplb_load_at": "windows() gives all counts as an array",
    "eplb_topology_copy": "a Topology is immutable",
    "eplb_topology_is_valid": "a Topology cannot be half built",
    "eplb_placement_copy": "a Placement is immutable",
    "eplb_plan_copy": "a Plan is immutable",
    "eplb_imbalance": "imbalance() goes over all layers in one call",
    "eplb_router_is_valid": "a Router cannot be half built",
    "eplb_resplit_is_valid": "a Resplit cannot be half built",
    "eplb_route_row": "a building block of repeat_table and Router",
}

# Fields of parameter structs that Python fills in by itself.
OWN_FIELDS = {"size", "progress_context"}

# Options of `eplb plan` by the keyword that does the same; None: they are about reading and writing files,
# or another function (frontier).
OPTIONS: dict[str, str | None] = {
    "ranks": "num_ranks",
    "slots": "num_slots",
    "nodes": "num_nodes",
    "groups": "num_groups",
    "policy": "policy",
    "split": "split",
    "current": "current",
    "max-moves": "max_moves",
    "target": "target",
    "spill": "spill",
    "dead": "dead",
    "frontier": None,
    "rank-slots": "rank_slots",
    "rank-speeds": "rank_speed",
    "cost": "cost",
    "tile": "tile",
    "sources": "sources",
    "threads": "threads",
    "work-limit": "work_limit",
    "time-budget": "time_budget",
    "array": None,
    "topk": None,
    "experts": None,
    "window": None,
    "format": None,
    "first-layer": None,
    "output": None,
    "json": None,
}


def public_functions() -> set[str]:
    text = "\n".join(build_ffi.strip_comments(path.read_text()) for path in HEADERS)
    return set(re.findall(r"\bEPLB_API\b[^;(]*?\b(eplb_\w+)\s*\(", text))


def used_functions() -> set[str]:
    """Attributes of `lib` in the package's sources."""
    found = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("lib", "_lib"):
                found.add(node.attr)
    return found


def test_every_public_function_is_wrapped_or_left_out_on_purpose() -> None:
    public, used = public_functions(), used_functions()
    assert len(public) > 100
    assert public - used - set(NOT_WRAPPED) == set(), "wrap these, or say in NOT_WRAPPED why not"
    assert set(NOT_WRAPPED) - public == set(), "these no longer exist"
    assert set(NOT_WRAPPED) & used == set(), "these are wrapped by now"


def test_the_extension_has_every_public_function() -> None:
    assert public_functions() - set(dir(native.lib)) == set()


def test_the_stub_is_current() -> None:
    expected = build_ffi.stub(ROOT / "include")
    stub = ROOT / "python" / "eplb" / "_eplb.pyi"
    command = "python/build_ffi.py --include include --stub --output python/eplb/_eplb.pyi"
    assert stub.read_text() == expected, f"run {command}"
    assert public_functions() == set(re.findall(r"def (eplb_\w+)", expected))


def test_every_status_has_its_class() -> None:
    statuses = {name for name in dir(native.lib) if name.startswith("EPLB_ERROR_")}
    assert {getattr(native.lib, name) for name in statuses} == set(native._CLASS_OF_STATUS)
    classes = {value for value in vars(errors).values() if isinstance(value, type) and value.__module__ == "eplb.errors"}
    assert classes - {errors.EplbError} == set(native._CLASS_OF_STATUS.values())
    assert all(getattr(eplb, cls.__name__) is cls for cls in classes)


@pytest.mark.parametrize(
    "prefix, values",
    [
        ("EPLB_SPLIT_", document.SPLITS.values()),
        ("EPLB_ROUTE_", routing._RULES.values()),
        ("EPLB_ELEMENT_", load._ELEMENTS.values()),
    ],
)
def test_every_choice_is_offered(prefix: str, values: Any) -> None:
    assert {getattr(native.lib, name) for name in dir(native.lib) if name.startswith(prefix)} == set(values)


def struct_fields(name: str) -> set[str]:
    return {field for field, _ in native.ffi.typeof(name).fields}


@pytest.mark.parametrize(
    "struct, function",
    [
        ("eplb_plan_params", "request.py"),
        ("eplb_topology_params", "topology.py"),
        ("eplb_load_params", "load.py"),
        ("eplb_router_params", "routing.py"),
        ("eplb_shared_params", "splitting.py"),
        ("eplb_realtime_params", "realtime.py"),
    ],
)
def test_every_parameter_is_set(struct: str, function: str) -> None:
    source = (ROOT / "python" / "eplb" / function).read_text()
    missing = {field for field in struct_fields(struct) - OWN_FIELDS if f"params.{field}" not in source}
    assert missing == set(), f"{struct} has fields that {function} does not set"


def test_every_parameter_struct_is_known() -> None:
    known = set(re.findall(r"EPLB_API void (eplb_\w+_params)_init", "".join(path.read_text() for path in HEADERS)))
    used = {name[: -len("_init")] for name in used_functions() if name.endswith("_params_init")}
    assert known == used


@pytest.mark.parametrize(
    "struct, cls",
    [
        ("eplb_move_count", eplb.Moves),
        ("eplb_traffic", eplb.Traffic),
        ("eplb_resplit_result", eplb.BatchSplit),
        ("eplb_realtime_plan", eplb.RealtimePlan),
    ],
)
def test_results_have_every_field(struct: str, cls: Any) -> None:
    assert struct_fields(struct) <= set(cls._fields)


def test_plan_has_every_option_of_the_command() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text()
    section = page.split("## eplb plan\n")[1].split("\n## ")[0]
    options = set(re.findall(r"^\| `(?:-\w, )?--([a-z-]+)", section, re.MULTILINE))
    assert options == set(OPTIONS), "give plan() what does the same, and list it here"
    keywords = set(inspect.signature(eplb.plan).parameters)
    assert {keyword for keyword in OPTIONS.values() if keyword} <= keywords


def test_the_document_has_the_keys_of_the_command() -> None:
    text = (ROOT / "tools" / "io" / "plan_json.c").read_text()
    found = re.findall(r"const char \*const (?:plan_)?keys\[\] = \{(.*?)\}", text, re.DOTALL)
    theirs = {frozenset(re.findall(r'"(\w+)"', body)) for body in found}
    ours = {frozenset(keys) for keys in (document._KEYS, document._METRICS, document._BEFORE, document._MOVES)}
    assert theirs == ours


def documented() -> Iterator[tuple[str, Any]]:
    """Every public object with its name, methods included."""
    for name in eplb.__all__:
        value = getattr(eplb, name)
        yield name, value
        if isinstance(value, type):
            for attribute, member in vars(value).items():
                if not attribute.startswith("_") and (callable(member) or isinstance(member, (property, classmethod))):
                    member = getattr(member, "__func__", member)
                    if inspect.getmodule(getattr(member, "fget", member)) is not None:
                        yield f"{name}.{attribute}", member


PUBLIC = dict(documented())


@pytest.mark.parametrize("name", PUBLIC)
def test_docstrings(name: str) -> None:
    text = inspect.getdoc(PUBLIC[name]) or ""
    assert text, f"{name} has no docstring"
    source = re.search(r"^Source: (.*)", text, re.MULTILINE)
    if source:
        named = re.findall(r"``(eplb_\w+)``", source[1])
        assert named and set(named) <= public_functions(), f"{name} names functions that do not exist"


@pytest.mark.parametrize("name", [name for name, value in PUBLIC.items() if "Parameters\n---" in (inspect.getdoc(value) or "")])
def test_parameters_are_documented_as_they_are(name: str) -> None:
    value = PUBLIC[name]
    text = inspect.getdoc(value) or ""
    section = text.split("Parameters\n----------\n")[1].split("\n\n")[0]
    names = [part.strip() for line in re.findall(r"^(\S.*?) :", section, re.MULTILINE) for part in line.split(",")]
    parameters = [p for p in inspect.signature(value).parameters if p != "self"]
    assert names == parameters


def test_all_is_all() -> None:
    public = {name for name, value in vars(eplb).items() if not name.startswith("_") and not inspect.ismodule(value)}
    assert public == set(eplb.__all__)
    assert eplb.__version__ == ".".join(
        str(getattr(native.lib, f"EPLB_VERSION_{part}")) for part in ("MAJOR", "MINOR", "PATCH")
    )


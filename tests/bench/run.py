#!/usr/bin/python3
"""Does a bench run? `run.py EPLB NAME` runs `eplb bench NAME --quick --json` and looks at its document: it has rows,
each with a name of its own, with figures, and every figure is a finite number. What the figures are is not looked at."""

import json
import math
import subprocess
import sys
import typing


def problems(document: dict[str, typing.Any]) -> list[str]:
    """What is wrong with a bench's document."""
    rows = document["results"]
    names = [row["name"] for row in rows]
    found = [] if rows else ["no rows"]
    found += [f"{name} is there {names.count(name)} times" for name in sorted(set(names)) if names.count(name) > 1]
    for row in rows:
        if len(row) < 2:
            found.append(f"{row['name']} has no figures")
        for key, value in row.items():
            if not isinstance(value, str) and not (isinstance(value, (int, float)) and math.isfinite(value)):
                found.append(f"{row['name']}: {key} is {value}")
    return found


def self_test() -> None:
    """A document that is wrong in every way is found to be."""
    good = {"results": [{"name": "a", "mean": 1.5}, {"name": "b", "rule": "quota"}]}
    assert problems(good) == []
    assert problems({"results": []}) == ["no rows"]
    bad = {"results": [{"name": "a", "mean": None}, {"name": "a", "mean": math.inf}, {"name": "c"}]}
    assert len(problems(bad)) == 4


def main() -> int:
    self_test()
    eplb, name = sys.argv[1:]
    result = subprocess.run([eplb, "bench", name, "--quick", "--json"], capture_output=True, text=True)
    if result.returncode != 0:
        print(f"exit status {result.returncode}: {result.stderr}")
        return 1
    found = problems(json.loads(result.stdout))
    print(*found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

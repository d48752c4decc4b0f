#!/usr/bin/python3
"""The golden runner fails where it should: each case below goes wrong, or right, in one way."""

import pathlib
import sys
import tempfile

import run

FAKE = '#!/bin/sh\necho "$@"\n[ "$1" != fail ] || { echo "no such thing" >&2; exit 2; }\n'
PASSING = {
    "exact": {"cmd": "eplb plan", "expected.stdout": "plan\n"},
    "exit and stderr": {
        "cmd": "eplb fail",
        "expected.stdout": "fail\n",
        "expected.stderr": "no such thing\n",
        "expected.exit": "2\n",
    },
    "silent": {"cmd": "eplb plan >/dev/null"},
    "glob": {"cmd": "eplb a; eplb b 12; eplb c", "expected.stdout.glob": "...\nb *\nc\n"},
    "private folder": {"cmd": "touch file && ls", "expected.stdout": "file\n"},
}
FAILING = {
    "other text": {"cmd": "eplb plan", "expected.stdout": "plans\n"},
    "no newline": {"cmd": "printf plan", "expected.stdout": "plan\n"},
    "not silent": {"cmd": "eplb plan"},
    "stderr not silent": {"cmd": "echo warning >&2"},
    "other exit": {"cmd": "exit 1"},
    "glob misses a line": {"cmd": "eplb a; eplb b", "expected.stdout.glob": "a\n"},
    "glob wants more": {"cmd": "eplb a", "expected.stdout.glob": "a\n...\nb\n"},
}


def write(folder: pathlib.Path, files: dict[str, str]) -> pathlib.Path:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def main() -> int:
    wrong = []
    with tempfile.TemporaryDirectory(prefix="eplb-golden-") as scratch:
        root = pathlib.Path(scratch)
        (root / "bin").mkdir()
        eplb = root / "bin" / "eplb"
        eplb.write_text(FAKE)
        eplb.chmod(0o755)
        for name, files in PASSING.items():
            problems = run.check(write(root / name, files), eplb)
            wrong += [f"'{name}' must pass: {problems}"] if problems else []
        for name, files in FAILING.items():
            folder = write(root / name, files)
            wrong += [] if run.check(folder, eplb) else [f"'{name}' must fail"]
            if not any(file.endswith(".glob") for file in files):
                run.update(folder, eplb)
                wrong += [f"'{name}' must pass once updated"] if run.check(folder, eplb) else []
    print("\n".join(wrong) or f"golden runner: ok, {len(PASSING) + len(FAILING)} cases")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

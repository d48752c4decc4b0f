#!/usr/bin/python3
"""Run command-line cases kept as files.

A case is a folder with
    cmd                      a shell script; `eplb` is on the PATH, $EXAMPLES is examples/, $CASE is the folder itself,
                             the working directory is empty and private
    expected.stdout          what it must print, exactly; absent means it must be silent
    expected.stderr          likewise
    expected.stdout.glob     instead of the exact file: one pattern per line, `*` and `?`; a line of `...` stands for
                             any number of lines
    expected.exit            its exit status; absent means 0

`run.py --update CASE` rewrites the exact files from what the command did; look at the diff before you commit it.
"""

import argparse
import difflib
import fnmatch
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def run(case: pathlib.Path, eplb: pathlib.Path) -> subprocess.CompletedProcess[bytes]:
    with tempfile.TemporaryDirectory(prefix="eplb-golden-") as scratch:
        environment = dict(
            os.environ,
            PATH=f"{eplb.parent}{os.pathsep}{os.environ['PATH']}",
            CASE=str(case),
            EXAMPLES=str(HERE.parent.parent / "examples"),
            LC_ALL="C",
            TERM="dumb",
        )
        return subprocess.run(
            ["sh", str(case / "cmd")], cwd=scratch, env=environment, stdin=subprocess.DEVNULL, capture_output=True
        )


def matches(lines: list[str], patterns: list[str]) -> bool:
    """Whether the lines follow the patterns, `...` taking as few lines as it can."""
    if not patterns:
        return not lines
    if patterns[0] == "...":
        return any(matches(lines[skip:], patterns[1:]) for skip in range(len(lines) + 1))
    return bool(lines) and fnmatch.fnmatchcase(lines[0], patterns[0]) and matches(lines[1:], patterns[1:])


def compare(case: pathlib.Path, stream: str, actual: bytes) -> list[str]:
    glob = case / f"expected.{stream}.glob"
    text = actual.decode("utf-8", "backslashreplace")
    if glob.exists():
        patterns = glob.read_text(encoding="utf-8").splitlines()
        if matches(text.splitlines(), patterns):
            return []
        return [
            f"{stream} does not match {glob.name}:",
            *difflib.unified_diff(patterns, text.splitlines(), lineterm=""),
        ]
    exact = case / f"expected.{stream}"
    wanted = exact.read_bytes().decode("utf-8", "backslashreplace") if exact.exists() else ""
    if text == wanted:
        return []
    diff = difflib.unified_diff(wanted.splitlines(), text.splitlines(), exact.name, "actual", lineterm="")
    return [f"{stream} differs:", *diff]


def check(case: pathlib.Path, eplb: pathlib.Path) -> list[str]:
    result = run(case, eplb)
    problems = compare(case, "stdout", result.stdout) + compare(case, "stderr", result.stderr)
    status = case / "expected.exit"
    wanted = int(status.read_text()) if status.exists() else 0
    if result.returncode != wanted:
        problems.append(f"exit status is {result.returncode}, expected {wanted}")
    return problems


def update(case: pathlib.Path, eplb: pathlib.Path) -> None:
    result = run(case, eplb)
    for stream, actual in (("stdout", result.stdout), ("stderr", result.stderr)):
        exact = case / f"expected.{stream}"
        if (case / f"expected.{stream}.glob").exists():
            continue
        if actual:
            exact.write_bytes(actual)
        else:
            exact.unlink(missing_ok=True)
    status = case / "expected.exit"
    if result.returncode:
        status.write_text(f"{result.returncode}\n")
    else:
        status.unlink(missing_ok=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run command-line cases kept as files.")
    parser.add_argument("--eplb", type=pathlib.Path, default=HERE.parent.parent / "build" / "eplb")
    parser.add_argument("--update", action="store_true", help="rewrite the expected files")
    parser.add_argument("cases", nargs="*", type=pathlib.Path, help="folders with a cmd; default: all")
    options = parser.parse_args()
    cases = options.cases or sorted(path.parent for path in HERE.rglob("cmd"))
    failed = 0
    for case in (case.resolve() for case in cases):
        if options.update:
            update(case, options.eplb.resolve())
            continue
        problems = check(case, options.eplb.resolve())
        print(f"{'FAIL' if problems else 'ok'}: {case.relative_to(HERE)}", *problems, sep="\n  ")
        failed += bool(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

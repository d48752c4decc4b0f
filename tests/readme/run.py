#!/usr/bin/python3
"""The quick start of the README works when it is copied line by line: `run.py EPLB` runs the commands of its shell
blocks in an empty folder that has build/eplb and examples/, as the repository has. `make` has been done."""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def commands(page: str) -> list[str]:
    """The lines of the shell blocks under "Quick start", without `make`."""
    section = page.split("\n## Quick start\n", 1)[1].split("\n## ", 1)[0]
    blocks = re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line and not line.startswith("make")]


def main() -> int:
    lines = commands((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(lines) >= 5, "the quick start has hardly a command"
    failed = 0
    with tempfile.TemporaryDirectory(prefix="eplb-readme-") as scratch:
        folder = pathlib.Path(scratch)
        (folder / "build").mkdir()
        (folder / "build" / "eplb").symlink_to(pathlib.Path(sys.argv[1]).resolve())
        (folder / "examples").symlink_to(ROOT / "examples")
        for line in lines:
            result = subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, text=True)
            if result.returncode != 0:
                print(f"exit status {result.returncode}: {line}\n{result.stderr}")
                failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

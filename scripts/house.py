"""What the checks share: where the files are, C without its comments, findings, and checks that check themselves.

A check is a function from a source tree to findings. Each comes with samples: small trees with one seeded violation, or
none. `--self-test` runs the check over its samples, so that a check that no longer catches anything fails.
"""

import argparse
import dataclasses
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
C_FOLDERS = ("include", "src", "tools", "bench", "fuzz", "tests", "examples", "python", "verify")


@dataclasses.dataclass(frozen=True)
class Finding:
    """One violation: where, and what to do about it."""

    path: pathlib.Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


@dataclasses.dataclass(frozen=True)
class Sample:
    """Files by name, and what the check must say about them (a part of one finding); None: it must say nothing."""

    files: dict[str, str]
    finding: str | None = None


def git(root: pathlib.Path, *words: str) -> str:
    """What git says; also about a checkout that belongs to another user."""
    command = ["git", "-C", str(root), "-c", "safe.directory=*", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def files(root: pathlib.Path) -> list[pathlib.Path]:
    """Every file of the project that git tracks or would track; in a plain folder, every file."""
    if (root / ".git").exists():
        names = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
        return sorted({root / name for name in names if name and (root / name).is_file()})
    skipped = re.compile(r"^build(-[^/]*)?/|(^|/)(__pycache__|\.cache)/")
    every = (path for path in root.rglob("*") if path.is_file())
    return sorted(path for path in every if not skipped.search(path.relative_to(root).as_posix()))


def c_files(root: pathlib.Path, *folders: str) -> list[pathlib.Path]:
    """The C sources and headers below the folders (default: all that hold C)."""
    wanted = folders or C_FOLDERS
    return [
        path
        for path in files(root)
        if path.suffix in (".c", ".h") and any(path.is_relative_to(root / folder) for folder in wanted)
    ]


_TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)


def code(text: str) -> str:
    """C text with comments blanked and strings emptied; lines and columns stay where they are."""

    def blank(match: re.Match[str]) -> str:
        token = match.group()
        if token[0] in "\"'":
            return token[0] + " " * (len(token) - 2) + token[0]
        return re.sub(r"[^\n]", " ", token)

    return _TOKEN.sub(blank, text)


def numbered(text: str) -> Iterator[tuple[int, str]]:
    return enumerate(text.splitlines(), start=1)


def _self_test(check: Callable[[pathlib.Path], Iterable[Finding]], samples: list[Sample]) -> list[str]:
    problems = []
    for number, sample in enumerate(samples):
        with tempfile.TemporaryDirectory(prefix="eplb-check-") as folder:
            root = pathlib.Path(folder)
            for name, text in sample.files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
                (root / name).chmod(0o755 if text.startswith("#!") else 0o644)
            found = [str(finding) for finding in check(root)]
        if sample.finding is None and found:
            problems.append(f"sample {number} is clean, but the check says: {found}")
        if sample.finding is not None and not any(sample.finding in line for line in found):
            problems.append(f"sample {number}: expected '{sample.finding}' among {found}")
    if not any(sample.finding for sample in samples):
        problems.append("no sample with a violation")
    return problems


def run(description: str, check: Callable[[pathlib.Path], Iterable[Finding]], samples: list[Sample]) -> int:
    """The command line of a check: 0 when nothing is wrong, else 1 and one line per finding."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--self-test", action="store_true", help="check the check on seeded violations")
    name = pathlib.Path(sys.argv[0]).name
    if parser.parse_args().self_test:
        problems = _self_test(check, samples)
        print("\n".join(problems) or f"{name}: ok, {len(samples)} samples")
        return 1 if problems else 0
    found = sorted({(finding.path.relative_to(ROOT), finding.line, finding.text) for finding in check(ROOT)})
    for path, line, text in found:
        print(f"{path}:{line}: {text}")
    print(f"{name}: {f'{len(found)} wrong' if found else 'ok'}")
    return 1 if found else 0

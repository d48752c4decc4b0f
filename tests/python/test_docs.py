"""The examples of the pages run as they stand: blocks of Python in order, sessions with what they print."""

from __future__ import annotations

import doctest
import pathlib
import re
from typing import Any

import pytest

import eplb

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [*sorted((ROOT / "docs" / "python").glob("*.md")), ROOT / "README.md"]
BLOCK = re.compile(r"(?:<!-- needs: (\w+) -->\n)?^```(python|pycon)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def has(module: str) -> bool:
    try:
        __import__(module)
    except ImportError:
        return False
    return True


def run_session(text: str, names: dict[str, Any], where: str, line: int) -> None:
    test = doctest.DocTestParser().get_doctest(text, names, where, where, line)
    assert test.examples, f"{where}:{line}: no example"
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    report: list[str] = []
    runner.run(test, out=report.append, clear_globs=False)
    names.update(test.globs)
    assert not runner.failures, "".join(report)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples(page: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    names: dict[str, Any] = {}
    for block in BLOCK.finditer(text):
        needs, kind, code = block.groups()
        if needs and not has(needs):
            continue
        line = text.count("\n", 0, block.start(3))
        if kind == "python":
            exec(compile("\n" * line + code, str(page), "exec"), names)
        else:
            run_session(code, names, page.name, line)


def test_there_are_examples() -> None:
    counts = {page.name: len(BLOCK.findall(page.read_text())) for page in PAGES}
    assert all(counts[name] >= 5 for name in ("quickstart.md", "guide.md", "migration.md")), counts


def test_the_reference_is_complete() -> None:
    page = (ROOT / "docs" / "python" / "reference.md").read_text()
    assert sorted(re.findall(r"auto\w+:: eplb\.(\w+)", page)) == sorted(eplb.__all__)

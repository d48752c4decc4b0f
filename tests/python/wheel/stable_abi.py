"""The extension of a wheel uses CPython's stable ABI of 3.9 alone: every Python symbol it needs belongs to it."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import tempfile
import zipfile

from abi3info import DATAS, FUNCTIONS
from abi3info.models import PyVersion, Symbol

LEAST = PyVersion(3, 9)


def outside(extension: pathlib.Path) -> list[str]:
    """Python symbols that the extension needs and the stable ABI of that version lacks."""
    output = subprocess.run(["nm", "-D", "--undefined-only", extension], check=True, capture_output=True, text=True)
    names = {line.split()[-1].split("@")[0] for line in output.stdout.splitlines()}
    wanted = sorted(name for name in names if name.startswith(("Py", "_Py")))
    if not wanted:
        raise SystemExit("stable_abi: the extension needs no Python symbol: is it an extension?")
    found = {**FUNCTIONS, **DATAS}
    return [name for name in wanted if Symbol(name) not in found or found[Symbol(name)].added > LEAST]


def main() -> None:
    with zipfile.ZipFile(sys.argv[1]) as wheel, tempfile.TemporaryDirectory() as folder:
        extensions = [name for name in wheel.namelist() if name.endswith(".so")]
        if extensions != ["eplb/_eplb.abi3.so"]:
            raise SystemExit(f"stable_abi: expected one extension, found {extensions}")
        needed = {"eplb/py.typed", "eplb/_eplb.pyi"} - set(wheel.namelist())
        if needed:
            raise SystemExit(f"stable_abi: the wheel lacks {sorted(needed)}")
        wrong = outside(pathlib.Path(wheel.extract(extensions[0], folder)))
    if wrong:
        raise SystemExit(f"stable_abi: not in the stable ABI of {LEAST}: {', '.join(wrong)}")
    print("stable ABI: ok")


if __name__ == "__main__":
    main()

"""Prints what `import eplb` takes beyond `import numpy`: the median of fresh processes."""

from __future__ import annotations

import statistics
import subprocess
import sys

CODE = "import time, numpy; a = time.perf_counter(); import eplb; print(1e3 * (time.perf_counter() - a))"


def main() -> None:
    command = [sys.executable, "-I", "-c", CODE]
    times = [float(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(9)]
    print(f"import eplb: {statistics.median(times):.1f} ms more than NumPy (least {min(times):.1f} ms)")


if __name__ == "__main__":
    main()

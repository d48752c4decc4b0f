"""An interrupted run leaves the old file as it was and nothing beside it."""
import os
import pathlib
import signal
import subprocess
import time

import pytest

COMMAND = os.environ.get("EPLB_COMMAND", "build/eplb")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_interrupted_write(tmp_path: pathlib.Path, number: signal.Signals) -> None:
    target = tmp_path / "load.json"
    target.write_bytes(b"the old file")
    process = subprocess.Popen(
        [COMMAND, "generate", "lognormal", "--windows", "300", "--layers", "58", "-o", str(target)]
    )
    deadline = time.monotonic() + 30
    while len(os.listdir(tmp_path)) < 2 and time.monotonic() < deadline:
        assert process.poll() is None, "the run ended before it could be interrupted"
        time.sleep(0.001)
    assert len(os.listdir(tmp_path)) == 2
    process.send_signal(number)
    assert process.wait(timeout=30) == -number
    assert os.listdir(tmp_path) == ["load.json"]
    assert target.read_bytes() == b"the old file"

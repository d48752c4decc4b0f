"""Files that NumPy writes are read as NumPy would read them, and files of the command are read by NumPy."""

import json
import os
import pathlib
import subprocess

import pytest

np = pytest.importorskip("numpy")

EPLB = os.environ.get("EPLB_COMMAND", str(pathlib.Path(__file__).resolve().parents[2] / "build" / "eplb"))
COUNTS = np.random.default_rng(7).integers(0, 100, (3, 2, 16))


def run(*arguments: object, stdin: bytes | None = None, status: int = 0) -> subprocess.CompletedProcess:
    result = subprocess.run([EPLB, *map(str, arguments)], input=stdin, capture_output=True)
    assert result.returncode == status, result.stderr.decode()
    return result


def total(path: object, *arguments: object, stdin: bytes | None = None) -> np.ndarray:
    """The load that the command reads, written back as a matrix or windows in JSON."""
    target = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"eplb-io-{os.getpid()}.json"
    run("convert", path, "-o", target, *arguments, stdin=stdin)
    document = json.loads(target.read_text())
    target.unlink()
    return np.array(document)


@pytest.mark.parametrize("kind", ["i1", "u1", "<i2", ">i2", "<u2", "<i4", ">i4", "<u4", "<i8", ">i8", "<u8", ">u8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_integers(tmp_path: pathlib.Path, kind: str, order: str) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.array(COUNTS, dtype=kind, order=order))
    assert np.array_equal(total(path), COUNTS)


@pytest.mark.parametrize("kind", ["<f2", ">f2", "<f4", ">f4", "<f8", ">f8"])
def test_whole_floats_are_integers(tmp_path: pathlib.Path, kind: str) -> None:
    path = tmp_path / "a.npy"
    np.save(path, COUNTS.astype(kind))
    assert np.array_equal(total(path), COUNTS)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_versions(tmp_path: pathlib.Path, version: tuple[int, int]) -> None:
    path = tmp_path / "a.npy"
    with path.open("wb") as file:
        np.lib.format.write_array(file, COUNTS, version=version)
    assert np.array_equal(total(path), COUNTS)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_archives(tmp_path: pathlib.Path, save) -> None:
    path = tmp_path / "a.npz"
    save(path, other=np.arange(3), counts=COUNTS)
    assert np.array_equal(total(path), COUNTS)
    assert np.array_equal(total("-", "--load", stdin=path.read_bytes()), COUNTS)
    assert np.array_equal(total(path, "--array", "other"), [np.arange(3)])


def test_text_files(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(COUNTS.tolist()))
    assert np.array_equal(total(tmp_path / "a.json"), COUNTS)
    np.savetxt(tmp_path / "a.csv", COUNTS[0], fmt="%d", delimiter=",")
    assert np.array_equal(total(tmp_path / "a.csv"), COUNTS[0])


@pytest.mark.parametrize("ending", ["npy", "npz", "json", "csv"])
def test_written_loads(tmp_path: pathlib.Path, ending: str) -> None:
    source, target = tmp_path / "a.npy", tmp_path / f"b.{ending}"
    np.save(source, COUNTS[0].astype(np.int32))
    run("convert", source, "-o", target)
    if ending == "csv":
        back = np.loadtxt(target, delimiter=",", dtype=np.int64)
    elif ending == "json":
        back = np.array(json.loads(target.read_text()))
    else:
        back = np.load(target)
        back = back["counts"] if ending == "npz" else back
    assert np.array_equal(back, COUNTS[0])


def test_written_placement(tmp_path: pathlib.Path) -> None:
    np.save(tmp_path / "a.npy", COUNTS[0])
    run("plan", tmp_path / "a.npy", "--ranks", 4, "--slots", 20, "--split", "weighted", "-o", tmp_path / "p.npz")
    run("convert", tmp_path / "p.npz", "-o", tmp_path / "p.json")
    arrays = np.load(tmp_path / "p.npz")
    document = json.loads((tmp_path / "p.json").read_text())
    slots = arrays["physical_to_logical_map"]
    assert slots.dtype == np.int64 and slots.tolist() == document["physical_to_logical_map"]
    assert arrays["shares"].tolist() == document["shares"]
    assert int(arrays["num_ranks"]) == 4
    for layer in range(2):
        assert np.array_equal(np.bincount(slots[layer], minlength=16), arrays["logical_count"][layer])
        for expert in range(16):
            listed = arrays["logical_to_physical_map"][layer, expert]
            assert listed[listed >= 0].tolist() == np.flatnonzero(slots[layer] == expert).tolist()


@pytest.mark.parametrize(
    "array, part",
    [
        (np.array([{}], dtype=object), "pickle"),
        (np.zeros((2, 2), dtype=complex), "type '<c16'"),
        (np.zeros((2, 2), dtype=bool), "type '|b1'"),
        (np.zeros((2, 2), dtype=[("a", "i4")]), "structured"),
        (np.array([[1.0, np.nan]]), "layer 0, expert 1: nan"),
        (np.array([[1, -1]]), "layer 0, expert 1: -1"),
        (np.array([[1, 2**63]], dtype=np.uint64), "element [0, 1]: 9223372036854775808"),
        (np.zeros((2, 0)), "0 experts"),
    ],
)
def test_refusals(tmp_path: pathlib.Path, array: np.ndarray, part: str) -> None:
    path = tmp_path / "a.npy"
    np.save(path, array, allow_pickle=True)
    result = run("plan", path, "--ranks", 1, "--slots", 2, status=2)
    assert part in result.stderr.decode() and str(path) in result.stderr.decode()
    assert result.stdout == b""

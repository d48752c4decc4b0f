"""Pictures: what a notebook shows is whole and holds the figures; matplotlib is asked for only when needed."""

from __future__ import annotations

import base64
import re
import struct
import sys
import xml.dom.minidom
import zlib

import numpy as np
import pytest

import eplb
from eplb import display


def pixels(png: bytes) -> np.ndarray:
    """A plain decoder of what display.png writes: 8-bit RGB, no filters."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    data, at, size = b"", 8, (0, 0)
    while at < len(png):
        (length,), kind = struct.unpack(">I", png[at : at + 4]), png[at + 4 : at + 8]
        body = png[at + 8 : at + 8 + length]
        assert struct.unpack(">I", png[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        size = struct.unpack(">II", body[:8]) if kind == b"IHDR" else size
        data += body if kind == b"IDAT" else b""
        at += 12 + length
    rows = np.frombuffer(zlib.decompress(data), np.uint8).reshape(size[1], 1 + 3 * size[0])
    assert (rows[:, 0] == 0).all()
    return rows[:, 1:].reshape(size[1], size[0], 3)


def test_colours() -> None:
    image = pixels(display.png(np.array([[1.0, 2.0, 0.0], [1.5, 0.5, 1.0]])))
    assert image.shape == (2, 3, 3)
    assert image[0, 0].tolist() == image[1, 2].tolist() == [250, 250, 250]
    assert image[0, 1].tolist() == [178, 24, 43] and image[0, 2].tolist() == [33, 102, 172]
    assert image[1, 0, 0] > image[1, 0, 2] and image[1, 1, 2] > image[1, 1, 0]


def test_plan_in_a_notebook(load: np.ndarray) -> None:
    plan = eplb.plan(load, num_ranks=8, num_slots=40, current=np.arange(240).reshape(6, 40) % 32)
    html = plan._repr_html_()
    xml.dom.minidom.parseString(html)
    assert f"{plan.imbalance.max():.4f}" in html and f"{plan.moves.received}, " in html
    image = pixels(base64.b64decode(re.findall(r"base64,([^\"]+)", html)[0]))
    assert image.shape == (8, 6, 3)
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")


def test_dead_and_slow_ranks_are_drawn_as_they_count(load: np.ndarray) -> None:
    plan = eplb.plan(load, num_ranks=8, num_slots=48, dead=[2], rank_speed=[4, 3, 1, 2, 4, 1, 3, 2])
    relative = display.over_fair(plan.rank_load(), plan.topology)
    np.testing.assert_allclose(relative.max(axis=1), plan.imbalance)
    assert (relative[:, 2] == 1).all()
    image = pixels(base64.b64decode(re.findall(r"base64,([^\"]+)", plan._repr_html_())[0]))
    assert (image[2] == image[2, 0]).all() and image[2, 0, 0] == image[2, 0, 2]
    nothing = display.over_fair(np.zeros((2, 8)), plan.topology)
    assert (nothing == 1).all()
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    for axes in (plan.heatmap(), plan.placement.heatmap(load)):
        worst = (plan.imbalance if axes is None else plan.placement.imbalance(load)).max()
        assert f"worst {worst:.3f}" in axes.get_title()
    matplotlib.pyplot.close("all")


def test_load_in_a_notebook(load: np.ndarray) -> None:
    html = eplb.Load(load)._repr_html_()
    xml.dom.minidom.parseString(html)
    assert str(load.sum()) in html and f"{(load / load.mean(axis=1, keepdims=True)).max():.2f}" in html
    xml.dom.minidom.parseString(eplb.Load(np.zeros((2, 4), int))._repr_html_())


def test_many_ranks_share_pixels() -> None:
    relative = np.ones((700, 2000))
    relative[650, 1999] = 9.0
    html = display.svg(relative, "rank")
    image = pixels(base64.b64decode(re.findall(r"base64,([^\"]+)", html)[0]))
    assert image.shape == (512, 512, 3) and (image[-1, :, 1] < 100).sum() == 1


def test_matplotlib_is_optional(load: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'eplb\[plot\]'"):
        eplb.plan(load, num_ranks=8).heatmap()


def test_heatmap(load: np.ndarray) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    plan = eplb.plan(load, num_ranks=8, num_slots=40)
    for axes in (plan.heatmap(), plan.placement.heatmap(load), eplb.Load(load).heatmap()):
        image = axes.get_images()[0].get_array()
        assert image.shape[1] == 6 and axes.get_xlabel() == "layer"
        axes.figure.savefig("/dev/null", format="png")
    np.testing.assert_allclose(plan.heatmap().get_images()[0].get_array().max(axis=0), plan.imbalance)
    assert all(float(tick).is_integer() for tick in plan.heatmap().get_xticks())
    mine = matplotlib.pyplot.subplots()[1]
    assert plan.heatmap(mine) is mine
    matplotlib.pyplot.close("all")

"""Pictures of loads: a heat map for matplotlib, and one that a notebook shows without any library."""

from __future__ import annotations

import base64
import html as markup
import struct
import zlib
from typing import TYPE_CHECKING, Any, Mapping

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from eplb.topology import Topology

# From cold to hot; the mean is white, so that what differs from it is what has colour.
_COLD, _MEAN, _HOT = (33, 102, 172), (250, 250, 250), (178, 24, 43)
_MOST_COLUMNS = 512


def over_mean(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each value over the mean of its row; 1 in rows of nothing."""
    mean = rows.mean(axis=1, keepdims=True)
    return np.divide(rows, mean, out=np.ones_like(rows), where=mean > 0)


def over_fair(rank_load: NDArray[np.float64], topology: Topology) -> NDArray[np.float64]:
    """[L, G]: time of each live rank over that of a perfect layer, so that the largest is the layer's imbalance.

    Dead ranks, and layers of nothing, count as 1: they have no colour.
    """
    live = topology.rank_alive != 0
    speed = topology.rank_speed.astype(np.float64)
    fair = rank_load[:, live].sum(axis=1, keepdims=True) / speed[live].sum()
    relative = np.ones_like(rank_load)
    np.divide(rank_load / speed, fair, out=relative, where=(fair > 0) & live)
    return relative


def heatmap(relative: NDArray[np.float64], what: str, axes: Any = None) -> Any:
    """Draws [L, n] relative loads, layers across; needs matplotlib."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("heatmap() needs matplotlib: pip install 'eplb[plot]'") from None
    axes = plt.subplots(figsize=(8, 4))[1] if axes is None else axes
    reach = max(float(np.abs(relative - 1).max()), 1e-9)
    image = axes.imshow(
        relative.T, aspect="auto", interpolation="nearest", cmap="RdBu_r", vmin=1 - reach, vmax=1 + reach
    )
    for axis in (axes.xaxis, axes.yaxis):  # there is no layer 2.5
        axis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("layer")
    axes.set_ylabel(what)
    axes.figure.colorbar(image, ax=axes, label=f"load of the {what} / mean of the layer")
    axes.set_title(f"imbalance: worst {relative.max():.3f}, mean {relative.max(axis=1).mean():.3f}")
    return axes


def _chunk(kind: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content) & 0xFFFFFFFF)
    )


def png(relative: NDArray[np.float64]) -> bytes:
    """[height, width] relative loads as a PNG of one pixel each, 1 being white."""
    reach = max(float(np.abs(relative - 1).max()), 1e-9)
    depth = np.clip((relative - 1) / reach, -1, 1)[..., None]
    colour = np.where(depth < 0, np.array(_COLD), np.array(_HOT))
    pixels = np.rint(np.array(_MEAN) + np.abs(depth) * (colour - np.array(_MEAN))).astype(np.uint8)
    height, width = relative.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)  # filter 0: none
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
        + _chunk(b"IDAT", zlib.compress(lines.tobytes()))
        + _chunk(b"IEND", b"")
    )


def _hottest_of_blocks(relative: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """At most `most` rows: neighbours share one, which shows the hottest of them."""
    rows = len(relative)
    if rows <= most:
        return relative
    return np.maximum.reduceat(relative, np.arange(most) * rows // most, axis=0)


def svg(relative: NDArray[np.float64], what: str) -> str:
    """[L, n] relative loads as an inline picture, layers across."""
    shown = _hottest_of_blocks(_hottest_of_blocks(relative, _MOST_COLUMNS).T, _MOST_COLUMNS)
    width, height = min(max(4 * shown.shape[1], 240), 720), min(max(4 * shown.shape[0], 60), 320)
    data = base64.b64encode(png(shown)).decode("ascii")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 30}" height="{height + 24}" role="img" '
        f'aria-label="heat map: {what} down, layers across"><g font-size="11" fill="currentColor" '
        f'font-family="sans-serif"><text x="{30 + width // 2}" y="{height + 16}" text-anchor="middle">layer</text>'
        f'<text transform="translate(14 {height // 2}) rotate(-90)" text-anchor="middle">{what}</text></g>'
        f'<image x="24" y="0" width="{width}" height="{height}" preserveAspectRatio="none" '
        f'style="image-rendering:pixelated" href="data:image/png;base64,{data}"/></svg>'
    )


def html(title: str, figures: Mapping[str, object], relative: NDArray[np.float64], what: str) -> str:
    """What a notebook shows: a table of figures and a heat map; nothing is fetched from elsewhere."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{markup.escape(name)}</th>"
        f"<td style='text-align:left'>{markup.escape(str(value))}</td></tr>"
        for name, value in figures.items()
    )
    return f"<div><b>{markup.escape(title)}</b><table>{rows}</table>{svg(relative, what)}</div>"

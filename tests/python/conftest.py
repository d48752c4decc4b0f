"""What several tests share: loads to plan for, and a report of what was left out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings

try:
    import torch

    torch.set_num_threads(1)
    HAS_TORCH = True
except ImportError:
    HAS_TORCH = False

settings.register_profile("quick", max_examples=60, deadline=None, derandomize=True)
settings.load_profile("quick")


def pytest_report_header() -> str:
    return f"torch: {torch.__version__ if HAS_TORCH else 'not installed, its tests are skipped'}"


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20250301)


@pytest.fixture
def load(rng: np.random.Generator) -> np.ndarray:
    """[6, 32]: uneven, no two alike."""
    counts: np.ndarray = np.rint(1e5 * np.exp(rng.standard_normal((6, 32)))).astype(np.int64)
    return counts

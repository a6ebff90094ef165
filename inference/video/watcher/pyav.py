"""Whether PyAV is there, and what to tell people where it is not."""

from __future__ import annotations

import importlib.util

HOW = "pip install av==18.1.0"
MISSING_PYAV_TEXT = (
    f"Videos are read by PyAV, which is not installed on this machine. Its operator installs it with: {HOW}"
)


def is_missing() -> bool:
    """Whether videos cannot be read here."""
    return importlib.util.find_spec("av") is None

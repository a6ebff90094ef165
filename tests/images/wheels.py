"""Tiny wheels, made without any network, and how jobs install them."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

from workers.supervisor import tiers

TIERS = range(tiers.best_tier()[0] + 1)


def layered_tiers(*, weaker: pytest.MarkDecorator) -> list[Any]:
    """Parameters of tests that need layers: the strongest tier here always, a weaker one with the mark `weaker`."""
    why = "needs bubblewrap, and root for users to hand out"
    marks = [weaker] if TIERS[-1] > 2 else []
    return [
        pytest.param(2, marks=[*marks, pytest.mark.skipif(TIERS[-1] < 2, reason=why)]),
        pytest.param(3, marks=pytest.mark.skipif(TIERS[-1] < 3, reason=why)),
    ]


PIP = "python -m pip -q --disable-pip-version-check"


def wheel(folder: Path, name: str, version: str, *, needs: str = "", more: dict[str, str] | None = None) -> Path:
    """A wheel of one module `name` whose `VERSION` is its version, and a program of the same name.

    Args:
        more: texts of further files, or others for these; "ABOUT" is the folder of what pip reads.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    about = f"{name}-{version}.dist-info"
    files = {
        f"{name}/__init__.py": f"VERSION = {version!r}\n\n\ndef main():\n    print({name!r}, VERSION)\n",
        f"{name}/only_{version.replace('.', '_')}.py": "",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        + (f"Requires-Dist: {needs}\n" if needs else ""),
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n",
    }
    files |= {path.replace("ABOUT", about): text for path, text in (more or {}).items()}
    files[f"{about}/RECORD"] = "".join(f"{each},,\n" for each in [*files, f"{about}/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for each, text in files.items():
            archive.writestr(each, text)
    return path

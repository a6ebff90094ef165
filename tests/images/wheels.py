"""Tiny wheels, made without any network, and how jobs install them."""

from __future__ import annotations

import zipfile
from pathlib import Path

from workers.supervisor import tiers

TIERS = range(tiers.best_tier()[0] + 1)
PIP = "python -m pip -q --disable-pip-version-check"


def wheel(folder: Path, name: str, version: str, *, needs: str = "") -> Path:
    """A wheel of one module `name` whose `VERSION` is its version, and a program of the same name."""
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
    files[f"{about}/RECORD"] = "".join(f"{each},,\n" for each in [*files, f"{about}/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for each, text in files.items():
            archive.writestr(each, text)
    return path

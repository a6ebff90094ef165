"""The images of the sample dataset: handwritten digits on textured backgrounds, generated once per installation."""

from __future__ import annotations

import importlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from django.conf import settings

from accounts.models import User
from datasets.services.sources import Source

COUNTS = {"train": 72, "val": 16, "test": 16}
CLASSES = (0, 1, 2, 3, 4)
FOLDER = "digits-1"  # a change of the images needs a new name


def generate_images() -> Path:
    """Return the folder with the images and their annotations; they are generated if they are missing."""
    folder = Path(settings.DATA_ROOT) / "sample" / FOLDER
    if folder.is_dir():
        return folder
    digits = importlib.import_module("aiplatform.cli.demo.digits")  # loads scikit-learn, which only this task needs
    folder.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".digits-", dir=folder.parent))
    try:
        digits.write(work, digits.draw(COUNTS, classes=CLASSES), annotated=True)
        work.chmod(0o755)
        work.rename(folder)
    except OSError:
        if not folder.is_dir():  # another task was faster otherwise
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return folder


def _files(user: User, metadata: Mapping[str, str]) -> Iterator[tuple[Path, str, str]]:
    """Yield the files of the sample dataset, which are the same for every user."""
    root = generate_images()
    for path in sorted(root.rglob("*")):
        if path.is_file():
            name = path.relative_to(root).as_posix()
            yield root, name, name


SOURCE = Source("sample", _files)

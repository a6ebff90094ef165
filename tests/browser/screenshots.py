"""Make the screenshots of README and help site: `python3 manage.py docs-shots [FOLDER]`, in about three minutes.

Starts a platform on a throw-away folder, walks the main job in headless Chromium and keeps six pictures of
1440×900. Few colours make them small; a picture above 200 KiB is refused.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from tests.browser.conftest import ARGS, CHROMIUM
from tests.browser.walk import Walk
from tests.journeys.up import running

WANTED = {
    "dataset": "1-dataset",
    "annotator": "2-annotate",
    "training-live": "3-train",
    "evaluation": "4-evaluate",
    "service": "5-serve",
    "cluster": "6-cluster",
}
MAX_BYTES = 200 * 1024
COUNTS = {"train": 96, "val": 16, "test": 16}
PARAMS = {"steps": "110", "budget_minutes": "0", "batch_size": "8", "width": "160", "height": "120"}


def small(png: bytes) -> bytes:
    """The same picture with as many colours as fit below the limit."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    for colours in (256, 128, 64, 32):
        kept = io.BytesIO()
        picture.quantize(colours, dither=Image.Dither.NONE).save(kept, "PNG", optimize=True)
        if kept.tell() <= MAX_BYTES:
            return kept.getvalue()
    raise SystemExit("a picture does not fit into 200 KiB")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("aiplatform/docs/site/en/assets"))
    folder: Path = parser.parse_args(argv).folder
    folder.mkdir(parents=True, exist_ok=True)
    taken: set[str] = set()

    def look(page: Page, name: str) -> None:
        if name in WANTED and name not in taken:
            page.mouse.move(0, 0)
            (folder / f"{WANTED[name]}.png").write_bytes(small(page.screenshot()))
            taken.add(name)
            print(f"{WANTED[name]}.png")

    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        with running(Path(scratch) / "data") as up:
            walk = Walk(up, chromium, Path(scratch), look=look, counts=COUNTS, params=PARAMS)
            walk.all()
            walk.close()
        chromium.close()
    missing = set(WANTED) - taken
    print(f"not seen: {', '.join(sorted(missing))}" if missing else "all there", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())

"""What a walk of a model at work needs: a film of blood cells whose crossings are known, and callers of a service."""

from __future__ import annotations

import json
import random
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import av
import numpy as np
from PIL import Image

CALLERS = 3
RATE, STEP = 10, 8  # pictures a second of the film, pixels it moves on between two


def boxes_of(voc: Path) -> list[tuple[str, float, float]]:
    """Class and middle of each box of a Pascal VOC file, those without area left out."""
    found = []
    for row in ElementTree.parse(voc).getroot().iter("object"):
        sides = [float(row.findtext(f"bndbox/{side}") or 0) for side in ("xmin", "ymin", "xmax", "ymax")]
        if sides[2] > sides[0] and sides[3] > sides[1]:
            found.append((row.findtext("name") or "", (sides[0] + sides[2]) / 2, (sides[1] + sides[3]) / 2))
    return found


def film(data: Path, file: Path, pictures: int = 4) -> Counter[str]:
    """A window that moves to the right over test pictures side by side; gives the cells that cross its middle."""
    names = (data / "ImageSets" / "Main" / "test.txt").read_text().split()[:pictures]
    strip = np.concatenate([np.asarray(Image.open(data / "JPEGImages" / f"{name}.jpg")) for name in names], 1)
    height, width = strip.shape[0], strip.shape[1] // pictures
    crossing: Counter[str] = Counter()
    for place, name in enumerate(names):
        for kind, x, _y in boxes_of(data / "Annotations" / f"{name}.xml"):
            crossing[kind] += width / 2 < place * width + x <= strip.shape[1] - width / 2
    with av.open(str(file), "w") as out:
        stream = out.add_stream("mpeg4", rate=RATE)
        stream.width, stream.height, stream.pix_fmt, stream.bit_rate = width, height, "yuv420p", 8_000_000
        for left in range(0, strip.shape[1] - width + 1, STEP):
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(strip[:, left : left + width]), format="rgb24")
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return crossing


class Load:
    """Callers of a service who never pause; counts what they were told."""

    def __init__(self, url: str, token: str, pictures: list[bytes]) -> None:
        self.url, self.token, self.pictures = url, token, pictures
        self.told: Counter[int] = Counter()
        self.times: list[float] = []
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._ask, daemon=True) for _number in range(CALLERS)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_args: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _ask(self) -> None:
        while not self._over.is_set():
            headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "image/jpeg"}
            request = urllib.request.Request(self.url, random.choice(self.pictures), headers)
            began = time.perf_counter()
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    json.load(answer)
                    self.told[answer.status] += 1
            except urllib.error.HTTPError as refusal:
                self.told[refusal.code] += 1
            except OSError:
                self.told[0] += 1
            self.times.append(time.perf_counter() - began)

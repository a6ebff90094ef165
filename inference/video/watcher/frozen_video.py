"""Whether a camera shows nothing new: the same picture again and again, or only black.

A sensor has noise, so that two pictures of an empty hall at night differ in some of their numbers, if only where the
stream begins a new group of pictures: between those, coders repeat what is still, to the last bit. A camera, recorder
or gateway that hangs gives the same bytes, or codes one picture anew, whose groups soon repeat. So pictures count as
frozen by what they are exactly, not by how near they are to each other, and no still scene is called frozen: it is
said where for `after_s` no picture came that had not come within the last `after_s` before. Short films that repeat
count as well. A generated picture without noise (a test card, an unused desktop) cannot be told from a frozen one.

Black is what is black nearly everywhere, whatever noise is on it: a covered lens, a lost signal, a room without light.
"""

from __future__ import annotations

import zlib

import numpy as np

from inference.video.watcher.pictures import Pixels

FROZEN, BLACK, OVER = "frozen", "black", "over"
EVERY_ROW = 4  # of a picture that is compared: a quarter of it has noise enough
GAP_S = 10.0  # without a picture: longer ones do not count, as nobody knows what it would have shown
FEWEST = 10  # frames, before they are reported as the same
MAX_FRAMES = 20_000  # pictures that are remembered, 100 a second for three minutes
DARK, SHARE = 20, 0.99  # of 255, and how much of a picture is darker in its means of BLOCK × BLOCK pixels
BLOCK = 8
LOOK_S = 0.5  # between two looks at how dark it is


class Stillness:
    """Follows the pictures of a stream.

    Args:
        after_s: how long nothing new may come; 0: for ever.

    Attributes:
        why: FROZEN, BLACK or "" while the pictures are as they should be.
        since: when that began, on the clock of the pictures.
    """

    def __init__(self, after_s: float) -> None:
        self.after_s = after_s
        self.why, self.since = "", 0.0
        self._last: float | None = None
        self._shown_s = 0.0  # how long pictures came, without the gaps between them
        self._known: dict[int, float] = {}  # what a picture is → when it came last, the oldest first
        self._count = 0  # pictures since the last new one
        self._new = self._looked = (0.0, 0.0)  # that clock and the pictures' own
        self._black: tuple[float, float] | None = None  # when it became black

    def update(self, shown: Pixels, at: float) -> str:
        """Look at a picture; FROZEN or BLACK where that has just become clear, OVER where it has ended, else "".

        Args:
            shown: height × width × 3.
            at: seconds, ever more.
        """
        if not self.after_s:
            return ""
        first, gap = self._last is None, at - (self._last or 0.0)
        self._shown_s += gap if gap <= GAP_S and not first else 0.0
        self._last = at
        now = (self._shown_s, at)
        self._compare(shown, now)
        if first or now[0] - self._looked[0] >= LOOK_S:
            self._looked = now
            self._black = (self._black or now) if is_black(shown) else None
        return self._changed()

    def _compare(self, shown: Pixels, now: tuple[float, float]) -> None:
        recent, clock = self._known, now[0]
        while recent and clock - (oldest := next(iter(recent.items())))[1] > self.after_s:
            del recent[oldest[0]]
        mark = zlib.crc32(np.ascontiguousarray(shown[::EVERY_ROW]).data)
        if recent.pop(mark, None) is None:
            self._new, self._count = now, 0
        recent[mark] = clock
        self._count += 1
        if len(recent) > MAX_FRAMES:
            del recent[next(iter(recent))]

    def _changed(self) -> str:
        why, since = "", 0.0
        if self._black is not None:  # black pictures are often the same ones, too
            if self._shown_s - self._black[0] >= self.after_s:
                why, since = BLACK, self._black[1]
        elif self._count > FEWEST and self._shown_s - self._new[0] >= self.after_s:
            why, since = FROZEN, self._new[1]
        if why == self.why:
            return ""
        self.why = why
        if not why:
            return OVER
        self.since = since
        return why


def is_black(shown: Pixels) -> bool:
    """Whether nearly all of a picture is black, noise aside."""
    height, width = (side // BLOCK * BLOCK for side in shown.shape[:2])
    if not height or not width:
        return bool(shown.mean() < DARK)
    grey = shown[:height, :width].max(2)
    means = grey.reshape(height // BLOCK, BLOCK, width // BLOCK, BLOCK).mean((1, 3))
    return bool((means < DARK).mean() >= SHARE)

"""The parameters of a watch, from params.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inference.video.watcher.zones import Line, Zone, line_of, zone_of

SHOWN_WIDTH = 640
DOUBTFUL = 0.1
FROZEN_AFTER_S = 60.0


@dataclass(frozen=True)
class Asked:
    """Parameters of a watch.

    Args:
        min_score: score from which a box begins a track; None: the model's own.
        classes: ids of those to follow; none: all.
        max_rate: pictures a second at most; 0: all of them.
        film: whether an annotated film is made.
        interval_s: how much time figures are put together.
        still_s: how long a stream may show the same picture, or black; 0: for ever.
        colors: id of a class → red, green and blue of its boxes.
    """

    lines: tuple[Line, ...]
    zones: tuple[Zone, ...]
    min_score: float | None
    classes: tuple[int, ...]
    max_rate: float
    film: bool
    interval_s: float
    lost_s: float
    still_s: float
    colors: Mapping[int, tuple[int, ...]]

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Asked:
        score = params.get("min_score")
        return cls(
            lines=tuple(map(line_of, params.get("lines") or ())),
            zones=tuple(map(zone_of, params.get("zones") or ())),
            min_score=None if score is None else float(score),
            classes=tuple(int(kind) for kind in params.get("classes") or ()),
            max_rate=float(params.get("max_rate") or 0),
            film=bool(params.get("film", True)),
            interval_s=float(params.get("interval_s") or 10),
            lost_s=float(params.get("lost_s") or 1),
            still_s=float(params.get("still_s", FROZEN_AFTER_S)),
            colors={int(kind): tuple(color) for kind, color in (params.get("colors") or {}).items()},
        )

"""When a training is scored along the way, and on what part of the images. Arithmetic only.

A curve wants points, and a short budget has no time for them: where all images would cost too much, every point along
the way is scored on the same sample, so that points compare. The end is scored on all.
"""

from __future__ import annotations

POINTS = 5  # of a curve at least, the end included
LATEST = 0.95  # of the way: after it, the end is near enough
MIN_DISTANCE_SHARE = 0.02  # of the way: so near a point another one shows nothing new


def part(share: float, *, whole_s: float, score_s: float) -> float:
    """What part of the images each point along the way is scored on, above 0 and at most 1.

    Args:
        share: of the training's time that scoring along the way may take.
        whole_s, score_s: how long the training lasts (infinity: nobody knows), and how long scoring all images takes.
    """
    return min(1.0, share * whole_s / (POINTS - 1) / max(score_s, 1e-9))


def due(progress: float, scored_at: float) -> bool:
    """Whether the next of the evenly spread points is due.

    Args:
        progress, scored_at: how far the training is, and where it was scored last, 0..1.
    """
    return (
        progress - scored_at >= MIN_DISTANCE_SHARE
        and progress < LATEST
        and int(progress * POINTS) > int(scored_at * POINTS)
    )


def affordable(share: float, progress: float, *, used_s: float, spent_s: float, cost_s: float) -> bool:
    """Whether one more point at an epoch's end keeps scoring within its share of the time used by now."""
    return progress < LATEST and spent_s + cost_s <= share * used_s


def left_s(progress: float, *, spent_s: float, point_s: float) -> float:
    """Seconds that scoring along the way still takes: the points that are due, or as much as it took so far.

    Args:
        spent_s, point_s: seconds that points took by now, and that one of them takes.
    """
    if progress >= LATEST:
        return 0.0
    planned = max(0, POINTS - 1 - int(progress * POINTS)) * point_s
    observed = spent_s * (1 - progress) / progress if progress >= 1 / POINTS else 0.0
    return max(planned, observed)


def sample(rows: list[int], part: float, *, least: int = 16) -> list[int]:
    """Return rows spread evenly over all, always the same ones; all of them if `part` is 1."""
    count = min(len(rows), max(least, round(part * len(rows))))
    return [rows[index * len(rows) // count] for index in range(count)]

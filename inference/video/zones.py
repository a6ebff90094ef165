"""Lines and zones drawn by a user: checked before a job gets them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid
from aiplatform.lib.numbers import finite
from aiplatform.lib.parsers import is_sound

MAX_ZONES = 20  # of each
FEWEST_CORNERS, MAX_CORNERS = 3, 30
MAX_NAME_LENGTH = 40
MAX_STAY_S = 86_400
NEAREST = 0.005  # two ends of a line lie further apart


def checked(content: Any) -> dict[str, list[dict[str, Any]]]:
    """Return {"lines": […], "zones": […]} as the program reads them; unknown fields are refused.

    Raises:
        Invalid: says which line or zone is wrong, and how.
    """
    if not isinstance(content, Mapping) or set(content) - {"lines", "zones"}:
        raise _wrong(_("Lines and zones must be an object with “lines” and “zones”."))
    lines, zones = content.get("lines") or [], content.get("zones") or []
    if not isinstance(lines, list) or not isinstance(zones, list) or max(len(lines), len(zones)) > MAX_ZONES:
        raise _wrong(_("Draw at most %(most)s lines and %(most)s zones.") % {"most": MAX_ZONES})
    result = {"lines": [_line(line) for line in lines], "zones": [_zone(zone) for zone in zones]}
    names = [entry["name"] for entry in (*result["lines"], *result["zones"])]
    if len(set(names)) < len(names):
        raise _wrong(_("Each line and each zone must have a different name."))
    return result


def _line(entry: Any) -> dict[str, Any]:
    name, points = _named(entry, {"name", "points"})
    if len(points) != 2 or max(abs(points[0][axis] - points[1][axis]) for axis in (0, 1)) < NEAREST:
        raise _wrong(_("Line “%(name)s” must have two different ends.") % {"name": name})
    return {"name": name, "points": points}


def _zone(entry: Any) -> dict[str, Any]:
    name, points = _named(entry, {"name", "points", "loiter_s"})
    if not FEWEST_CORNERS <= len(points) <= MAX_CORNERS:
        facts = {"name": name, "low": FEWEST_CORNERS, "high": MAX_CORNERS}
        raise _wrong(_("Zone “%(name)s” must have %(low)s to %(high)s corners.") % facts)
    stay = finite(entry.get("loiter_s") or 0)
    if stay is None or not 0 <= stay <= MAX_STAY_S:
        raise _wrong(_("The time after which an object counts as loitering must be 0 to 86400 seconds."))
    return {"name": name, "points": points, "loiter_s": stay}


def _named(entry: Any, fields: set[str]) -> tuple[str, list[list[float]]]:
    if not isinstance(entry, Mapping) or set(entry) - fields:
        raise _wrong(_("A line or zone must have the fields %(names)s.") % {"names": ", ".join(sorted(fields))})
    name, points = entry.get("name"), entry.get("points")
    if not isinstance(name, str) or not is_sound(name) or not 1 <= len(name.strip()) <= MAX_NAME_LENGTH:
        raise _wrong(_("The name of a line or zone must have 1 to %(most)s characters.") % {"most": MAX_NAME_LENGTH})
    if not isinstance(points, list) or any(not isinstance(point, list) or len(point) != 2 for point in points):
        raise _wrong(_("The points of “%(name)s” must be pairs of numbers.") % {"name": name})
    numbers = [[finite(value) for value in point] for point in points]
    if any(value is None or not 0 <= value <= 1 for point in numbers for value in point):
        raise _wrong(_("The points of “%(name)s” must be relative to the image size, from 0 to 1.") % {"name": name})
    return name.strip(), [[round(value or 0.0, 5) for value in point] for point in numbers]


def _wrong(message: str) -> Invalid:
    return Invalid(message, field="places")

"""What a device says of its rounds, for people. The codes are those of `device/agent.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from aiplatform.lib import wording
from aiplatform.lib.numbers import finite
from aiplatform.lib.wording import Message, Show, Wording
from inference.kit.models import selftest

WELL, WAITING, WRONG = "ok", "wait", "fail"
TONES = {WELL: "run", WAITING: "wait", WRONG: "fail"}  #: hues of chips
DIFFER = "answers_differ"
#: outcome → (how it looks, what it means)
OUTCOMES = {
    "": (WAITING, _("Not reported yet")),
    "same": (WELL, _("Runs the target model")),
    "updated": (WELL, _("Updated")),
    "nothing_wanted": (WELL, _("No model yet")),
    "later": (WAITING, _("Not completed, retrying")),
    "server_refused": (WAITING, _("The server rejected its request, retrying")),
    "offline": (WAITING, _("Could not reach the server")),
    "needs_packages": (WRONG, _("Python packages are missing on the device")),
    "no_room": (WRONG, _("The disk of the device is full")),
    "damaged": (WRONG, _("The package was damaged")),
    "bad_signature": (WRONG, _("The release is not signed by a trusted key")),
    "wrong_device": (WRONG, _("The release was for another device")),
    "older": (WRONG, _("Received an older release")),
    "expired": (WRONG, _("Received an outdated release")),
    "failed_self_test": (WRONG, _("The model failed its self-test")),
    DIFFER: (WRONG, _("The predictions on the device differ; it keeps the previous model")),
    "rolled_back": (WRONG, _("The model did not respond; the device rolled back")),
    "not_running": (WRONG, _("The model does not start")),
    "errors": (WRONG, _("The model fails on images")),
    "bad_package": (WRONG, _("This package failed before; the previous one is kept")),
}
#: Whether a device keeps pictures for annotation, as it says.
SAMPLES = {
    "off": _("Stores no images"),
    "on": _("Stores images for annotation"),
    "forbidden": _("The operator of the device does not allow sending images"),
}
#: What people did, and the platform, for the audit trail.
VERBS = {
    "edge_group_made": _("created the device group"),
    "edge_group_deleted": _("deleted the device group"),
    "edge_device_added": _("added a device to"),
    "edge_device_revoked": _("revoked the token of a device of"),
    "edge_device_removed": _("removed a device of"),
    "edge_key_rotated": _("rotated the key that signs releases to edge devices"),
    "edge_released": _("released a model to"),
    "edge_rolled_back": _("rolled back the model of"),
    "edge_release_went_on": _("advanced the release to"),
    "edge_samples_set": _("changed which images are stored by"),
    "edge_release_halted": _("halted the release to"),
}
#: Facts of a device and its counters, as its agent names them.
FACTS = {
    "processor": _("CPU"),
    "machine": _("CPU architecture"),
    "card": _("GPU"),
    "cores": _("Cores"),
    "memory_mib": _("Memory in MiB"),
    "system": _("System"),
    "python": "Python",
    "model": _("Device"),
    "gpu": _("Graphics driver"),
    "requests": _("Processed images"),
    "errors": _("Failed"),
    "p50_ms": _("Median (ms)"),
    "p95_ms": _("p95 (ms)"),
}
FAILURES = ("failed_self_test", DIFFER, "rolled_back", "bad_package", "not_running", "errors")
#: What differs in a self-test → how it is said. Scores, shares and vectors are from 0 to 1, places in percent of the
#: longer side of the picture.
DIFFERENCES = {
    selftest.SCORE: _(
        "Sample %(sample)s of %(samples)s: a score differs by %(largest)s; the tolerance is %(tolerance)s."
    ),
    selftest.BOX: _(
        "Sample %(sample)s of %(samples)s: a box differs by %(percent)s %% of the image, at most %(most)s %% "
        "is allowed."
    ),
    selftest.POINT: _(
        "Sample %(sample)s of %(samples)s: a point differs by %(percent)s %% of the image, at most %(most)s %% "
        "is allowed."
    ),
    selftest.SHARE: _(
        "Sample %(sample)s of %(samples)s: the area of a class differs by %(percent)s %% of the image, at most "
        "%(most)s %% is allowed."
    ),
    selftest.VECTOR: _(
        "Sample %(sample)s of %(samples)s: the vector differs by %(largest)s; the tolerance is %(tolerance)s."
    ),
    selftest.CLASS: _("Sample %(sample)s of %(samples)s: different class."),
    selftest.MISSING: _("Sample %(sample)s of %(samples)s: a prediction is missing, its score differs by %(largest)s."),
    selftest.EXTRA: _("Sample %(sample)s of %(samples)s: an additional prediction, its score differs by %(largest)s."),
    selftest.FORM: _("Sample %(sample)s of %(samples)s: the prediction has a different format."),
}
MAX_SAMPLES = 100


def parse_difference(values: Any) -> dict[str, Any]:
    """Return the difference of answers that a device reports; {} where it is not valid."""
    if not isinstance(values, Mapping) or values.get("kind") not in DIFFERENCES:
        return {}
    numbers = {name: finite(values.get(name)) for name in ("sample", "samples", "largest", "tolerance")}
    sample, samples, largest, tolerance = numbers.values()
    if sample is None or samples is None or not 1 <= sample <= samples <= MAX_SAMPLES:
        return {}
    if largest is None or tolerance is None or not 0 <= largest <= selftest.WORST or not 0 <= tolerance <= 1:
        return {}
    return numbers | {"kind": values["kind"], "sample": int(sample), "samples": int(samples)}


def describe_difference(differs: Mapping[str, Any]) -> str:
    """Return which prediction of a self-test differs, and by how much; "" if none does."""
    return str(Message(f"edge_difference.{differs['kind']}", differs)) if differs else ""


def _largest(value: float) -> str:
    return f"{value:.3g}" if value < selftest.WORST else gettext("an unknown amount")


def register() -> None:
    """Make all texts known; called once when the app is ready."""
    shows = {
        "largest": Show("largest", _largest),
        "tolerance": Show("tolerance", "{:g}".format),
        "percent": Show("largest", lambda value: f"{100 * value:.3g}"),
        "most": Show("tolerance", lambda value: f"{100 * value:g}"),
    }
    wording.register("edge_difference", {kind: Wording(text, **shows) for kind, text in DIFFERENCES.items()})

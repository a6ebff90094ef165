"""What a device says of its rounds, for people. The codes are those of `device/agent.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.numbers import finite
from inference.kit.models import selftest

WELL, WAITING, WRONG = "ok", "wait", "fail"
DIFFER = "answers_differ"
#: outcome → (how it looks, what it means)
OUTCOMES = {
    "": (WAITING, _("Has not reported yet")),
    "same": (WELL, _("Runs what it should")),
    "updated": (WELL, _("Updated")),
    "nothing_wanted": (WELL, _("Nothing to run yet")),
    "later": (WAITING, _("Could not finish, tries again")),
    "server_refused": (WAITING, _("The server refused its request, it tries again")),
    "offline": (WAITING, _("Could not reach the server")),
    "needs_packages": (WRONG, _("Python packages are missing on it")),
    "no_room": (WRONG, _("Its disk has no room")),
    "damaged": (WRONG, _("The package came damaged")),
    "bad_signature": (WRONG, _("The release is not signed by a key that it trusts")),
    "wrong_device": (WRONG, _("The release was for another device")),
    "older": (WRONG, _("Was sent an older release")),
    "expired": (WRONG, _("Was sent a release that is out of date")),
    "failed_self_test": (WRONG, _("The model failed its self-test")),
    DIFFER: (WRONG, _("The model answers there otherwise than it should; it keeps the one before")),
    "rolled_back": (WRONG, _("The model did not answer; it went back to the one before")),
    "not_running": (WRONG, _("The model does not start")),
    "errors": (WRONG, _("The model fails with pictures")),
    "bad_package": (WRONG, _("Failed with this package before, keeps the one before")),
}
#: Whether a device keeps pictures for annotation, as it says.
SAMPLES = {
    "off": _("Keeps no pictures"),
    "on": _("Keeps pictures for annotation"),
    "forbidden": _("Its operator lets no picture leave it"),
}
#: What people did, and the platform, for the audit trail.
VERBS = {
    "edge_group_made": _("made the device group"),
    "edge_group_deleted": _("deleted the device group"),
    "edge_device_added": _("added a device to"),
    "edge_device_revoked": _("revoked the token of a device of"),
    "edge_device_removed": _("removed a device of"),
    "edge_key_rotated": _("rotated the key that signs releases to edge devices"),
    "edge_released": _("released a model to"),
    "edge_rolled_back": _("rolled back the model of"),
    "edge_release_went_on": _("carried on the release to"),
    "edge_samples_set": _("set which pictures are kept by"),
    "edge_release_halted": _("halted the release to"),
}
#: Facts of a device and its counters, as its agent names them.
FACTS = {
    "processor": _("Processor"),
    "machine": _("Architecture of the processor"),
    "card": _("Graphics card"),
    "cores": _("Cores"),
    "memory_mib": _("Memory in MiB"),
    "system": _("System"),
    "python": "Python",
    "model": _("Device"),
    "gpu": _("Graphics driver"),
    "requests": _("Pictures answered"),
    "errors": _("Of them failed"),
    "p50_ms": _("Milliseconds, median"),
    "p95_ms": _("Milliseconds, 95 %"),
}
FAILURES = ("failed_self_test", DIFFER, "rolled_back", "bad_package", "not_running", "errors")
#: What differs in a self-test → how it is said. Scores, shares and vectors are from 0 to 1, places in percent of the
#: longer side of the picture.
DIFFERENCES = {
    selftest.SCORE: _(
        "Sample %(sample)s of %(samples)s: a score differs by %(largest)s, at most %(tolerance)s may be."
    ),
    selftest.BOX: _(
        "Sample %(sample)s of %(samples)s: a box lies %(percent)s %% of the picture away, at most %(most)s %% may be."
    ),
    selftest.POINT: _(
        "Sample %(sample)s of %(samples)s: a point lies %(percent)s %% of the picture away, at most %(most)s %% may be."
    ),
    selftest.SHARE: _(
        "Sample %(sample)s of %(samples)s: the area of a class differs by %(percent)s %% of the picture, "
        "at most %(most)s %% may be."
    ),
    selftest.VECTOR: _(
        "Sample %(sample)s of %(samples)s: the vector differs by %(largest)s, at most %(tolerance)s may be."
    ),
    selftest.CLASS: _("Sample %(sample)s of %(samples)s: it says another class."),
    selftest.MISSING: _("Sample %(sample)s of %(samples)s: an answer is missing, its score is off by %(largest)s."),
    selftest.EXTRA: _(
        "Sample %(sample)s of %(samples)s: there is an answer too many, its score is off by %(largest)s."
    ),
    selftest.FORM: _("Sample %(sample)s of %(samples)s: the answer has another form."),
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
    """Which answer of a self-test differs, and by how much, in a sentence; "" of nothing."""
    if not differs:
        return ""
    largest, tolerance = float(differs["largest"]), float(differs["tolerance"])
    facts = {
        "sample": differs["sample"],
        "samples": differs["samples"],
        "largest": f"{largest:.3g}" if largest < selftest.WORST else gettext("more than can be said"),
        "tolerance": f"{tolerance:g}",
        "percent": f"{100 * largest:.3g}",
        "most": f"{100 * tolerance:g}",
    }
    return str(DIFFERENCES[differs["kind"]]) % facts

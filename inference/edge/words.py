"""What a device says of its rounds, for people. The codes are those of `device/agent.py`."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

WELL, WAITING, WRONG = "ok", "wait", "fail"
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
FAILURES = ("failed_self_test", "rolled_back", "bad_package", "not_running", "errors")

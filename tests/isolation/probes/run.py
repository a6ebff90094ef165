"""Runs all probes inside a job, one line of JSON before and after each."""

import json

from tests.isolation.probes import files, hogs, kernel, people
from tests.isolation.probes.aim import TARGETS

SUBJECTS = {
    "Files and records": files.PROBES,
    "Other jobs and the platform": people.PROBES,
    "The kernel": kernel.PROBES,
    "Taking it all": hogs.PROBES,
}
PROBES = tuple(probe for probes in SUBJECTS.values() for probe in probes)


def answer(probe):
    """What came of it; a probe that answers nothing is looked after by those who started the job."""
    try:
        found = probe()
    except Exception:
        return "refused"
    return "asked" if found is None else "possible" if found else "refused"


def main(path):
    """Try everything on what the file names."""
    with open(path) as file:
        TARGETS.update(json.load(file))
    with open(TARGETS["run"] + "/supervisor.json") as file:
        TARGETS["supervisor"] = json.load(file)["pid"]
    for probe in PROBES:
        print(json.dumps({"tries": probe.__name__}), flush=True)
        print(json.dumps({"found": [probe.__name__, answer(probe)]}), flush=True)

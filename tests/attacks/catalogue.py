"""Every case of the catalogue by its id. A test carries the id in its name: `test_d04_…` or `test_D04_…`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
_NAME = re.compile(r"^\s*(?:async )?def (test_([A-La-l]\d\d)_\w+)\(", re.MULTILINE)

CASES: Mapping[str, str] = {
    "A01": "no default account, no shared secret, the first administrator by a console link",
    "A02": "many wrong passwords for one name make it wait, over all web processes",
    "A03": "one address trying many names waits",
    "A04": "known and unknown names are answered alike",
    "A05": "one counter guards every entry point",
    "A06": "a new session after sign-in; a changed password or a disabled account ends everything",
    "A07": "cookies are locked down, no secret is taken from an address",
    "A08": "the way back after sign-in stays on this site",
    "A09": "reset links use the configured address, work once and for an hour",
    "A10": "a thousand accounts from a file: strong first passwords, shown once, made in the background",
    "A11": "an account without permissions reads whom to ask and nothing else",
    "B01": "every route answers every kind of person as the table says",
    "B02": "a stranger's object beneath mine is missing",
    "B03": "references in bodies see only what the sender may see",
    "B04": "filters and orderings nobody offered are refused",
    "B05": "counts, search and overviews leave others out",
    "B06": "every file download checks its object",
    "B07": "sockets of strangers close, a withdrawn right ends the stream",
    "B08": "public is for reading",
    "B09": "answers are private and never shared by a cache",
    "B10": "edits that name another project's images write nothing",
    "C01": "nobody promotes himself by a field",
    "C02": "nobody sets what the platform sets",
    "C03": "nobody lets himself into a cluster or raises its limits",
    "C04": "who annotates does only that",
    "C05": "who manages people grants no more than he has",
    "C06": "preset roles and the last administrator stay",
    "C07": "a token does no more than its scope and its owner",
    "C08": "no way of asking answers differently from the table",
    "C09": "privileged jobs need an operator's switch and a grant",
    "C10": "nobody changes what runs with somebody else's rights",
    "D01": "names that leave the archive",
    "D02": "links, devices and setuid in an archive",
    "D03": "the chain of long links",
    "D04": "bombs",
    "D05": "overlapping entries and lying headers",
    "D06": "too many entries",
    "D07": "awkward names",
    "D08": "images of too many pixels",
    "D09": "pictures that are also pages",
    "D10": "what is no picture",
    "D11": "upright images",
    "D12": "typed by content, bad ones reported",
    "D13": "uploads that lie",
    "D14": "no room is said before bytes flow",
    "D15": "hostile COCO",
    "D16": "entity bombs",
    "E01": "paths outside the allowed roots",
    "E02": "links that leave or are swapped",
    "E03": "what the person may not read",
    "E04": "pipes and devices",
    "E05": "what lies on the server stays when the dataset goes",
    "F01": "names and values reach the program as they are, no shell anywhere",
    "F02": "a start file that is none",
    "F03": "cards that do not exist",
    "F04": "reserved variables",
    "F05": "nothing of the platform's environment",
    "F06": "nothing of the platform's files",
    "F07": "messages carry ids only and name what is queued",
    "F08": "rules and references of pipelines evaluate nothing but what they say",
    "H01": "a log is text",
    "H02": "a line of a hundred megabytes",
    "H03": "bytes that are no text",
    "H04": "a flooded log",
    "H05": "a job cannot speak in the platform's voice",
    "H06": "secrets are masked, names break no log line",
    "I01": "addresses that would lead a proxy elsewhere",
    "I02": "sockets of jobs from foreign pages and strangers",
    "I03": "a hostile page inside a job",
    "I04": "headers of jobs that act beyond their path, redirects to inner hosts",
    "I05": "ports of jobs that ended",
    "I06": "SSH lets the owner in, with a key that is hers now, and leads to the job's own ports alone",
    "I07": "a one-time SSH password opens one job once",
    "I08": "whoever only knocks at SSH takes nobody's place",
    "I09": "TensorBoard reads the outputs of its job alone",
    "I10": "what a job tells the SSH gateway harms its own sessions alone",
    "J01": "sockets from foreign pages",
    "J02": "unsafe requests without the token",
    "J03": "tokens are hashed, shown once and revoked at once",
    "J04": "a repeated request does its work once",
    "J05": "JSON that breaks parsers and databases",
    "J06": "monstrous shapes",
    "J07": "lists are bounded",
    "J08": "pasted pipelines and parameters of runs",
    "K01": "a line break in a subject",
    "K02": "webhooks into the house",
    "K03": "cells that are formulas",
    "K04": "the admin site shows no secret and errors tell nothing",
    "K05": "no secret leaks into lists, messages or files",
    "K06": "webhooks that come in: forged, late, repeated, too many",
    "L01": "twenty at once on one quota",
    "L02": "asked twice, done once",
    "L03": "two people on one image",
    "L04": "what changed between the page and the request",
}


@dataclass(frozen=True)
class NotYet:
    """A case that has nothing to attack so far. `applies` turns true when it gets something."""

    why: str
    applies: Callable[[], bool]


def _has_privileged_jobs() -> bool:
    from workers.core.models import Job

    return any("privileged" in column.name for column in Job._meta.concrete_fields)


NOT_YET: Mapping[str, NotYet] = {
    "C09": NotYet(
        "No job runs as root or with more than its sandbox: there is no privileged job.", _has_privileged_jobs
    ),
}


def held_by(root: Path = TESTS) -> dict[str, list[str]]:
    """`path::name` of every test that carries a case's id, by case."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(root.rglob("test_*.py")):
        for name, case in _NAME.findall(path.read_text()):
            if case.upper() in CASES:
                found[case.upper()].append(f"{path.relative_to(root.parent)}::{name}")
    return dict(found)

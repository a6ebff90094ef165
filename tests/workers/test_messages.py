"""Every message by its code: its text is wholly in the reader's language, whoever acted, and shows all its facts."""

from __future__ import annotations

import ast
import re

from django.utils import translation

from aiplatform.lib.wording import VERBATIM, WORDINGS, Message, message
from inference.kit.models.selftest import WORST
from tests.architecture.code import modules_with, tree, where
from tests.cases import case_table
from workers.resources.monitoring.rules import RULES

#: Facts by name as rows hold them, and what is seen of them in every language.
FACTS = {
    "beside_failed": 4, "beside_requests": 800, "requests": 200, "object": 7, "place": "Door", "class": "cell",
    "way": "in", "cuda": "12.4", "driver": 470, "needed": "x86_64", "there": "aarch64", "newest": 470,
    "address": "10.0.0.7", "after": "4 GiB", "attempt": 2, "allowed_mib": 4096.0, "back_s": 1.5, "before": 2, "card": 3,
    "cluster": "lab", "code": 3, "count": 4, "ended": 9, "error": "OSError: [Errno 28]", "failed": 5, "has": "1.2",
    "held_mib": 5120.0, "how": {"code": "job.exit_code", "facts": {"code": 9}}, "idle_s": 10800.0, "job": 77,
    "limit_bytes": 1 << 30, "used_bytes": 1 << 31,
    "limit_mib": 512.0, "limit_s": 86400.0, "made_at": "2026-01-31T08:00:00+00:00", "mib": 900.4, "name": "digits",
    "new": 50, "node": "gpu-03", "nodes": ["n1", "n2"], "now": 1, "old": 0, "out_s": 0.5, "person": "anna",
    "processes": ["7 (python)"], "rank": 2, "seconds": 90, "server": "1.3", "span_s": 5400.0, "status": 503,
    "steps": 20, "subject": "gpu-01", "text": "as it stands", "value": 91.04, "version": "cells v2",
    "weights": "alice/cells v1", "largest": 0.25, "places": "a/1.png, b/1.png", "factor": 2,
    "why": {"code": "card.driver_hangs", "facts": {}}, "word": "until six",
    "note": {"code": "card.driver_hangs", "facts": {}}, "path": "/data/lab",
    "model": "cells v1",
    "image": "b/1.png", "id": 12, "kind": "GIF", "other": "b/2.png", "file": "b.xml", "label": "ring", "index": 3,
    "most": 10000, "most_mib": 16, "limit": 2000, "split": "train", "names": "k", "one": "B.png",
    "left": "1", "top": "2", "right": "1", "bottom": "4", "width": 40, "height": 30,
    "stated_width": 64, "stated_height": 48, "says": {"code": "report.negative_box", "facts": {}},
    "host": "registry.example.org", "what": "lab/torch:2", "own": "amd64", "tier": 2,
    "flaw": {"code": "shape.no_area", "facts": {}},
    "jobs": ["12", "13"], "number": 1, "minutes": 15, "percent": 8,
    "key": "val/loss", "point": 3, "hours": 1.5, "study": "digits",
    "busy": 95, "share": 40, "bound": 0.9, "metric": "gpu", "alias": "digits", "than": "cells v1",
    "of": "cells v1", "service": "demo", "images": 300, "apart": "0.41",
    "allowed": "0.13", "train": 80, "val": 10, "test": 10, "seed": 7, "query": "class=cells",
    "people": "anna", "comment": "as it stands", "question": "as it stands", "rule": "digits > 1",
    "values": "digits = 2", "step": "digits", "answer": "digits",
    "page": "/account/secrets/", "near": "ap50",
    "format": "VIA", "advice": "COCO", "rows": 30, "columns": 40, "low": -5, "high": 70000, "others": "big5",
    "mask": "b/1_mask.png", "asked": 2, "free": 1, "total": 8, "best": 1, "used": 3, "running": 2, "group": "vision",
    "groups": "vision", "asked_mib": 4096, "least": 1, "sample": 2, "samples": 8, "tolerance": 0.05,
}  # fmt: skip
#: Facts whose values are names of something else, by code.
NAMES = {
    "version.split": {"group": "folder"}, "archive.unsafe_name": {"why": {"code": "archive.name_drive", "facts": {}}},
    "pipeline.broke": {"why": "OSError: [Errno 28]"}, "pipeline.items_failed": {"of": 9},
    "job.reason": {"reason": "owner"}, "job.fault": {"signal": "SIGSEGV"}, "job.signal": {"signal": "SIGKILL"},
    "alarm.title": {"severity": "warning", "rule": "gpu_hot"},
    "alarm.over": {"severity": "critical", "rule": "gpu_hot"},
    "alarm.rule": {"rule": "gpu_hot"}, "node.eviction_not_proven": {"why": "no card"},
    "job.stranded": {"why": "no card"}, "job.stranded_unsaved": {"why": "no card"},
    **{f"news.{code}": {"kind": "training"}
       for code in ("approval_requested", "approved", "attempt_failed", "completed", "failed", "made_room", "refused",
                    "stopped")},
}  # fmt: skip
CHINESE = re.compile(r"[\u4e00-\u9fff]")
ENGLISH = re.compile(r"\b(?:the|its|is|was|are|of|it|for|with|and|asked|ended|more|job|machine|card)\b", re.IGNORECASE)
#: What a Chinese text may keep: names, and words of others.
FOREIGN = (
    "OSError: [Errno 28]", "CVAT for images", "python", "digits", "gpu", "until six", "cells", "card", "as it stands",
    "no card",
)  # fmt: skip
CODES = WORDINGS.codes()


def facts_of(code):
    wording = WORDINGS.find(code)
    return {name: NAMES.get(code, {}).get(name, FACTS.get(name)) for name in wording.facts}


def test_message_codes_are_many_and_each_app_has_some():
    assert len(CODES) > 120
    assert {code.split(".")[0] for code in CODES} >= {"job", "node", "card", "news", "alarm", "notice", "service"}
    assert {f"alarm.rule.{key}" for key in RULES} <= set(CODES)


@case_table("code", CODES)
def test_message_is_wholly_in_the_readers_language_whoever_acted(code):
    facts = facts_of(code)
    assert None not in facts.values(), "give the test an example of each fact"
    texts = {}

    for acted, read in (("zh-hans", "en"), ("en", "zh-hans")):
        with translation.override(acted):
            kept = message(code, **facts).as_json()
        with translation.override(read):
            texts[read] = str(Message.from_json(kept))

    assert not CHINESE.search(texts["en"])
    assert CHINESE.search(texts["zh-hans"])
    said = texts["zh-hans"]
    for word in FOREIGN:
        said = said.replace(word, "")
    assert not ENGLISH.search(said), texts["zh-hans"]
    for text in texts.values():
        assert "–" not in text, "a fact is not filled in"
        assert "%(" not in text
        assert "{" not in text
        assert text != code


@case_table("code", [code for code in CODES if WORDINGS.find(code).facts])
def test_message_without_its_facts_still_shows_a_text(code):
    for facts in ({}, {name: {"of": "another version"} for name in WORDINGS.find(code).facts}):
        text = str(Message(code, facts))
        assert text
        assert "%(" not in text


def test_message_counts_in_the_readers_plural():
    one, many = message("job.placed", nodes=["n1"]), message("job.placed", nodes=["n1", "n2"])

    assert (str(one), str(many)) == ("Placed on n1.", "Placed together on n1, n2.")
    with translation.override("zh-hans"):
        assert (str(one), str(many)) == ("已分配到 n1。", "已分配到 n1, n2。")


def test_message_of_words_of_others_stays_as_it_is_in_every_language():
    for language in ("en", "zh-hans"):
        with translation.override(language):
            assert str(Message(VERBATIM, {"text": "CUDA error: out of memory %s"})) == "CUDA error: out of memory %s"


@case_table(
    ("code", "facts", "text"),
    [
        ("wait.no_cards", {"asked": 4, "free": 1}, "Waits for GPUs: 4 needed, 1 free."),
        ("wait.over_user_cores", {"asked": 0.5, "limit": 8, "cluster": "lab"},
         "Requested CPU cores: 0.5. Limit per user in cluster lab: 8 CPU slots."),
        ("wait.machine_full", {}, "Waiting for free resources on node –, which stores its installed packages. To start "
         "elsewhere, discard the packages on the job page, or start a new job from a saved image."),
        ("edge_difference.corners", {"sample": 2, "samples": 8, "largest": 0.12345, "tolerance": 0.05},
         "Sample 2 of 8: a box differs by 12.3 % of the image, at most 5 % is allowed."),
        ("edge_difference.score", {"sample": 1, "samples": 8, "largest": WORST, "tolerance": 0.05},
         "Sample 1 of 8: a score differs by an unknown amount; the tolerance is 0.05."),
        ("audit.role_made", {}, "created the role"),
    ],
)  # fmt: skip
def test_message_of_a_stored_row_shows_its_values(code, facts, text):
    assert str(Message(code, facts)) == text


def test_message_of_an_unknown_code_shows_the_code():
    assert str(Message("job.of_tomorrow", {"n": 1})) == "job.of_tomorrow"
    assert str(Message()) == ""
    assert not Message()


def test_message_cleans_what_no_database_keeps():
    assert message("job.launch_failed", error="a\x00b\ud800").facts == {"error": "ab?"}


def _calls():
    """(place, code, names of facts) of every message that the source makes by a code; None is a ** among the names."""
    for path in modules_with(r"\bmessage\("):
        for node in ast.walk(tree(path)):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            first = node.args[0]
            if name != "message" or len(node.args) != 1:
                continue
            named = {keyword.arg for keyword in node.keywords}
            for code in _codes(first):
                yield where(path, node.lineno), code, named


def _codes(node):
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.IfExp):
        return [*_codes(node.body), *_codes(node.orelse)]
    return []


def test_messages_of_the_source_are_registered_and_given_their_facts():
    found = list(_calls())

    wrong = [
        (place, code, sorted(WORDINGS.find(code).facts - named) if code in CODES else "unknown")
        for place, code, named in found
        if code not in CODES or (None not in named and WORDINGS.find(code).facts - named)
    ]

    assert len(found) > 60
    assert wrong == []

"""Specifications of pipelines that tests of texts and differences share."""

from hypothesis import strategies as st

EXAMPLE = {
    "format": 1,
    "parameters": {"preset": {"default": "classify_small"}},
    "steps": {
        "cells": {"kind": "dataset", "with": {"dataset": "BCCD", "version": "latest"}},
        "train": {
            "kind": "train",
            "with": {"params": {"epochs": 3}, "preset": "${preset}"},
            "from": {"data": "cells.data"},
            "retries": 1,
        },
        "judge": {"kind": "evaluate", "from": {"data": "cells.data", "model": "train.model"}},
        "better": {"kind": "gate", "with": {"rule": "AP50 >= 0.85"}, "from": {"figures": "judge.figures"}},
        "serve": {
            "kind": "serve",
            "with": {"service": "cells"},
            "from": {"model": "train.model"},
            "when": "better.passed",
            "after": ["tell"],
        },
        "tell": {
            "kind": "notify",
            "with": {"text": "it failed"},
            "after": ["train"],
            "rule": "any_failed",
            "note": "why this step is there",
        },
    },
}

_ODD = ["yes", "on", "NO", "1e5", "0x1", "1:30", "2026-01-01", "~", "=", "<<", ".inf", "- a", "a: b", "a #b", "${p}"]
TEXTS = st.one_of(
    st.text(max_size=10), st.text("ab:#- \n'\"{}[],&*!|>@0.e\t\r\x85\u2028", max_size=10), st.sampled_from(_ODD)
)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        TEXTS,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=4,
)
NAMES = st.sampled_from(["a", "b", "c1", "p", "if", "print", "step", "from_", "data", "model", "items", "when", "port"])
LINKS = st.builds("{}.{}".format, NAMES, NAMES)
FEEDS = st.one_of(LINKS, st.lists(LINKS, min_size=2, max_size=3, unique=True))
KINDS = st.sampled_from(["train", "dataset", "gate", "filter", "pipeline", "items", "unheard_of"])


def _full(step):
    return {name: value for name, value in step.items() if value}


STEPS = st.fixed_dictionaries(
    {"kind": KINDS},
    optional={
        "with": st.dictionaries(st.one_of(NAMES, TEXTS.filter(bool)), VALUES, max_size=3),
        "from": st.dictionaries(NAMES, FEEDS, max_size=2),
        "when": LINKS,
        "after": st.lists(NAMES, max_size=2, unique=True).map(sorted),
        "each": LINKS,
        "retries": st.integers(0, 10),
        "rule": st.sampled_from(["", "all_done", "any_failed"]),
        "tolerate": st.sampled_from([0.0, 0.5, 1.0]),
        "note": TEXTS.map(str.strip),
    },
).map(_full)
_PARAMETERS = st.dictionaries(
    NAMES,
    st.tuples(VALUES, TEXTS.map(str.strip)).map(lambda two: {"default": two[0]} | ({"note": two[1]} if two[1] else {})),
    min_size=1,
    max_size=2,
)
SPECS = st.fixed_dictionaries(
    {"format": st.just(1), "steps": st.dictionaries(NAMES, STEPS, max_size=5)}, optional={"parameters": _PARAMETERS}
)

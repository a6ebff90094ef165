"""Pipelines as YAML and as Python, there and back."""

import copy
import json
import sys
import time

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from aiplatform.lib.errors import Invalid
from inference.pipelines import builder, text
from inference.pipelines.python_text import to_python
from tests.cases import case_table
from tests.pipelines.specs import EXAMPLE, SPECS, TEXTS

WRITTEN = """\
# The pipeline of every Sunday
format: 1

parameters:
  preset:
    default: classify_small   # small is enough

steps:
  # What we have
  cells:
    kind: dataset
    with:
      version: latest  # always
      dataset: "BCCD"

  train:
    # three are enough
    kind: train
    with: {preset: "${preset}", params: {epochs: 3}}
    from:
      data: cells.data

  # The last word
  tell:
    kind: notify
    with:
      text: |
        over

        and out
    after: [train]
# the end
---
layout:
  train: [10, 20]  # here
"""


def same(first, second):
    return json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)


@settings(max_examples=50, deadline=None)
@given(
    SPECS, st.none() | st.dictionaries(TEXTS, st.lists(st.integers(-9999, 9999), min_size=2, max_size=2), max_size=2)
)
def test_yaml_there_and_back_loses_nothing_for_our_reader_and_for_others(spec, layout):
    written = text.to_yaml(spec, layout)

    read = text.from_yaml(written)
    assert same(read.spec, spec)
    assert same(read.layout, layout)
    assert same(next(iter(yaml.safe_load_all(written))), spec)


@settings(max_examples=60, deadline=None)
@given(SPECS, SPECS)
def test_a_merged_text_says_what_it_shall(old, new):
    merged = text.merge_text(text.to_yaml(old, {}), new)

    assert same(text.from_yaml(merged).spec, new)
    assert text.merge_text(merged, new) == merged


def test_a_pipeline_is_written_in_the_order_in_which_it_runs():
    written = text.to_yaml(EXAMPLE, {"cells": [1, -2]})

    assert written.startswith("format: 1\n\nparameters:\n  preset:\n    default: classify_small\n\nsteps:\n  cells:\n")
    assert [line.strip(" :") for line in written.split("\n") if line.startswith("  ") and line[2] != " "][1:] == [
        "cells", "train", "judge", "tell", "better", "serve", "cells: [1, -2]",
    ]  # fmt: skip
    assert "\n    after: [tell]\n" in written
    assert (
        "\n\n  train:\n    kind: train\n    with:\n      params:\n        epochs: 3\n      preset: ${preset}\n"
        in written
    )


def test_a_change_leaves_comments_order_and_layout_of_the_rest():
    spec = copy.deepcopy(text.from_yaml(WRITTEN).spec)
    assert text.merge_text(WRITTEN, spec) == WRITTEN

    spec["steps"]["cells"]["with"]["version"] = 3
    spec["steps"]["train"]["retries"] = 2
    spec["steps"]["judge"] = {"kind": "evaluate", "from": {"data": "cells.data", "model": "train.model"}}
    del spec["steps"]["tell"]
    rewired = text.merge_text(WRITTEN, spec, {"train": [1, 2]})

    assert '      version: 3  # always\n      dataset: "BCCD"\n' in rewired
    assert "  # What we have\n  cells:\n" in rewired
    assert "    # three are enough\n    kind: train\n" in rewired
    assert "    retries: 2\n\n  judge:\n    kind: evaluate\n" in rewired
    assert "tell" not in rewired
    assert rewired.endswith("# the end\n---\nlayout:\n  train: [1, 2]\n")
    assert same(text.from_yaml(rewired).spec, spec)


def test_what_comes_first_is_put_below_the_words_about_the_whole():
    spec = {"format": 1, "parameters": {"lr": {"default": 1}}, "steps": {"a": {"kind": "items"}, "b": {"kind": "gate"}}}

    merged = text.merge_text("# whole\n\n# all steps\nsteps:\n  # b\n  b:\n    kind: gate\n", spec)

    assert merged == (
        "# whole\n\nparameters:\n  lr:\n    default: 1\n\n# all steps\nsteps:\n  a:\n    kind: items\n\n"
        "  # b\n  b:\n    kind: gate\n"
    )


def test_a_renamed_step_keeps_its_comments():
    spec = json.loads(
        json.dumps(text.from_yaml(WRITTEN).spec).replace('"cells"', '"blood"').replace("cells.", "blood.")
    )

    merged = text.merge_text(WRITTEN, spec)

    assert merged == WRITTEN.replace("  cells:", "  blood:").replace("cells.data", "blood.data")


@case_table(
    ("content", "says"),
    [
        ("steps: &a {}\nx: *a", "Line 1: anchors and aliases"),
        ("a: 1\nsteps: !!python/object/apply:os.system [x]", "Line 2: tags"),
        ("steps: {}\nsteps: {}", "Line 2: Duplicate key “steps”"),
        ("steps: {a: {kind: train, with: {on: yes}}}", "Line 1: quote “yes”"),
        ("a: 010", "quote “"),
        ("a: 1e999", "quote “"),
        ("a: [1", "Line 2 is not valid YAML"),
        ("? [a]\n: 1", "a key must be a text"),
        ("[" * 100_000, "at most 40"),
        ("- a", "starts with keys"),
        ("", "starts with keys"),
        ("steps: [a]\nx: 1\nsteps: 1", "Duplicate key"),
        ("a: 1\n---\nb: 2", "The second document"),
        ("a: 1\n---\nlayout: {}\n---\n", "at most two documents"),
        ("a: [" + "1," * 201_000 + "]", "too many values"),
        ("a: \x00", "does not permit|no YAML"),
        ("a: \ud800", "does not permit"),
        ("a: " + "x" * (1 << 20), "larger than 1 MiB"),
    ],
)
def test_what_readers_differ_on_or_suffer_from_is_refused(content, says):
    began = time.process_time()

    with pytest.raises(Invalid, match=says) as refused:
        text.from_yaml(content)

    assert refused.value.blamed == "text"
    assert time.process_time() - began < 5


@settings(max_examples=60, deadline=None)
@given(st.one_of(st.text(max_size=40), st.text("a:b -\n[]{}'\"#&*!|>?%,0", max_size=40)))
def test_reading_any_text_refuses_or_reads(content):
    try:
        read = text.from_yaml(content)
    except Invalid:
        return
    text.merge_text(content, EXAMPLE)
    assert same(text.from_yaml(text.to_yaml(read.spec)).spec, read.spec)


def run_script(script, monkeypatch):
    """What a script makes, run as `aip pipeline push` runs it, but in this process."""
    monkeypatch.setitem(sys.modules, "aip_pipeline", builder)
    scope = {"__name__": "pipeline"}
    exec(compile(script, "script.py", "exec"), scope)
    return scope["p"].spec()


@settings(max_examples=50, deadline=None)
@given(SPECS)
def test_python_there_and_back_by_way_of_yaml_loses_nothing(spec):
    with pytest.MonkeyPatch.context() as patched:
        made = run_script(to_python(spec), patched)
        again = run_script(to_python(text.from_yaml(text.to_yaml(made)).spec), patched)

    assert same(made, spec)
    assert same(again, spec)


def test_a_script_reads_as_people_would_write_it(tmp_path, capsys, monkeypatch):
    script = tmp_path / "sunday.py"
    script.write_text(to_python(EXAMPLE, "Every Sunday") + "print('words of its own')\n")
    monkeypatch.setattr(builder.Pipeline, "made", [])
    monkeypatch.setitem(sys.modules, "aip_pipeline", builder)

    assert builder.main(str(script)) == 0

    captured = capsys.readouterr()
    assert json.loads(captured.out) == EXAMPLE
    assert captured.err == "words of its own\n"
    assert 'judge = p.evaluate("judge", data=cells.data, model=train.model)' in script.read_text().replace("'", '"')
    assert builder.main(str(script)) == 1
    assert "makes 2 pipelines" in capsys.readouterr().err

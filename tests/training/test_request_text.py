"""Requests as text: what is read, what is refused and on which line, and what comes back the same."""

import pytest

from aiplatform.lib.errors import Invalid
from tests.cases import case_table
from training.programs import request_text


@case_table(
    ("text", "request_"),
    [
        ("command: python train.py\ngpus_per_node: 2\n", {"command": "python train.py", "gpus_per_node": 2}),
        ('{"command": "x", "variables": {"A": "1"}}', {"command": "x", "variables": {"A": "1"}}),
        ("command: |\n  one\n  two\n", {"command": "one\ntwo\n"}),
        ("name: 2026-11-23\n", {"name": "2026-11-23"}),
        ("", {}),
        ("# nothing\n", {}),
        ("command: |\n  {{ python }} a\n  {{b}}\n", {"command": "{{ python }} a\n{{b}}\n"}),
        ("command: >-\n  {{ python }}\n  it's {{ b }}\n", {"command": "{{ python }} it's {{ b }}"}),
        ("cpus: {{ n }}  # how many\n", {"cpus": "{{ n }}"}),
        ("datasets: [{{ a }}, 2, {{ b }}]\n", {"datasets": ["{{ a }}", 2, "{{ b }}"]}),
        ("command: |\n  {{\n  a }}\n", {"command": "{{\na }}\n"}),
    ],
)
def test_request_text_is_read_as_plain_values(text, request_):
    assert request_text.read(text) == request_


@case_table(
    ("text", "said"),
    [
        ("command: [1, 2", "Line 1"),
        ("a: 1\nb: 2\na: 3\n", "Line 3 is invalid: duplicate field a"),
        ("a: &x [1]\nb: *x\n", "Line 2 is invalid: aliases"),
        ("a: !!python/object/apply:os.system [id]\n", "Line 1"),
        ("- one\n- two\n", "one field per line"),
        ("just words", "one field per line"),
        ("a: .nan\n", "plain values"),
        ("a: " + "[" * 20_000 + "]" * 20_000, "Line 1 is invalid: lists and mappings are nested deeper than 40"),
        ("a: [" + "b," * 20_000 + "]", "Line 1 is invalid: a request can have at most 12000 values"),
        ("a: 1\nb: " + "1:" * 1000 + "1", "Line 2 is invalid: this number is too long"),
        ("a: !!binary aGk=\n", "plain values"),
        ("1: x\n", "one field per line"),
        ("x" * 200_001, "at most 200000"),
        ("{{ a }}: 1\nb: 2\n{{ a }}: 3\n", "Line 3 is invalid: duplicate field {{ a }}"),
        ('a: "\\{{ b }}"\n', "Line 1"),
    ],
)
def test_request_text_that_is_hostile_or_wrong_is_refused_with_its_line(text, said):
    with pytest.raises(Invalid, match=said):
        request_text.read(text)


def test_request_text_written_is_read_as_the_same():
    request = {
        "command": "one\ntwo",
        "name": "ü 训练",
        "variables": {"A": "yes", "B": "1"},
        "cpus": 1.5,
        "datasets": [3],
    }

    assert request_text.read(request_text.written(request)) == request


def test_request_text_knows_the_line_of_each_field():
    text = "command: |\n  one\n  two\ngpus_per_node: 9\nname: {{ who }} {{ what }}\ncpus: {{ n }}  # how many\n"

    assert request_text.lines_of(text) == {"command": 1, "gpus_per_node": 4, "name": 5, "cpus": 6}

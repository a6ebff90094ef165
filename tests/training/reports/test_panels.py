"""Panels are read strictly: unknown names and odd values are refused by their lines, all of them at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiplatform.lib.errors import Invalid
from tests.cases import case_table
from training.experiments.reports import documents
from training.experiments.reports.documents import Broken

TEXT = """# Rates

```curves
keys: [val/accuracy, train/loss]
filter: params.lr < 0.1
smoothing: 0.5
group_by: params.lr
```

```python
runs: [1]
```

1. A list
   ```runs
   limit: 3
   ```

```scatter
x: params.lr
y: val/accuracy
```
"""


def broken(text: str) -> list[str]:
    return [sentence for part in documents.parts(text) if isinstance(part, Broken) for sentence in part.sentences]


def test_panels_are_blocks_of_their_own_kinds():
    curves, scatter = documents.parts(TEXT)

    assert (curves.kind, curves.line) == ("curves", 3)
    assert curves.values["keys"] == ("val/accuracy", "train/loss")
    assert (curves.values["axis"], curves.values["smoothing"], curves.columns) == ("step", 0.5, ["params.lr"])
    assert (scatter.line, scatter.columns) == (19, ["params.lr", "last(val/accuracy)"])


def test_everything_wrong_is_said_at_once_by_its_line(alice):
    text = (
        "```curves\naxis: hour\ncolor: red\n```\n\n```runs\nlimit: many\nruns: [1]\nfilter: x\n```\n"
        "```scatter\nx: params.lr\ny: cards\nfilter: lr >\ncolour: hue\n```\n"
    )

    with pytest.raises(Invalid) as refused:
        documents.check(text, alice)

    said = [one.message for one in refused.value.every]
    assert said[0] == "Line 2: axis is invalid: must be one of step, time, epoch."
    assert said[1].startswith("Line 3: A panel “curves” has no field color. Available fields: title, filter,")
    assert said[2] == "Line 1: A panel “curves” needs the field keys."
    assert said[3] == "Line 7: limit is invalid: must be an integer from 1 to 100."
    assert said[4] == "Line 9: Specify runs by numbers or by a filter, not both."
    assert said[5].startswith("Line 11: The filter is incomplete")
    assert said[6] == "Line 11: Unknown column hue."
    assert {one.blamed for one in refused.value.every} == {"text"}


@case_table(
    ("inside", "said"),
    [
        ("limit: [", "Line 3 is invalid"),
        ("limit: 1\nlimit: 2", "Line 3 is invalid: duplicate field limit."),
        ("a: &x 1\nb: *x", "Line 3 is invalid: aliases are not supported."),
        ("filter: !!python/object/apply:os.system [ls]", "Line 2 is invalid"),
        ("- 1", "Line 1: Write one field per line"),
        ("limit: true", "Line 2: limit is invalid"),
        ("runs: []", "Line 2: runs is invalid"),
        ("runs: [0]", "Line 2: runs is invalid"),
        ("runs: ['1']", "Line 2: runs is invalid"),
        ("runs: [99999999999999999999]", "Line 2: runs is invalid"),
        ("columns: [[a]]", "Line 2: columns is invalid"),
        ("<<: {filter: lr > 1}\nruns: [1]", "Line 1: Specify runs by numbers or by a filter"),
        ("? [a]\n: b", "Line 2 is invalid"),
        ("title: !!binary aGk=", "Line 1: Expected YAML or JSON"),
        ("1: 2", "Line 1: Write one field per line"),
        ("title: .nan", "Line 1: Expected YAML or JSON with plain values."),
        ("title: " + "x" * 151, "Line 2: title is invalid: must have at most 150 characters."),
        ("# " + "x" * 10_000, "Line 1: A panel can have at most 10000 characters."),
    ],
)
def test_odd_panel_is_refused(inside, said):
    sentences = broken(f"```runs\n{inside}\n```")

    assert [one for one in sentences if one.startswith(said)], sentences


def test_hostile_text_is_read_in_time():
    for text in ("```runs\n" * 4000, "> " * 60_000, "[" * 100_000, "```runs\n" + "[" * 9_000):
        documents.parts(text)


PIECES = st.sampled_from(
    [
        *("runs: ", "filter: ", "keys: ", "x: ", "value: ", "- ", "? ", ": ", "<<: ", "&a ", "*a", "!!set ", "---"),
        *("[", "]", "{", "}", "\n", "  ", "|\n", ">", "'", '"', "`", "```", "\t", "#", "%", "@", "\\", "é", "\u2028"),
        *("1", "1e999", "0x1", ".inf", "~", "true", "best(a)"),
    ]
)


@given(kind=st.sampled_from(["runs", "curves", "scatter", "figure"]), pieces=st.lists(PIECES, max_size=25))
def test_no_text_breaks_the_reading_of_panels(kind, pieces):
    text = f"before\n\n```{kind}\n{''.join(pieces)}\n```\n\nafter"

    for part in documents.parts(text):
        assert not isinstance(part, Broken) or part.sentences

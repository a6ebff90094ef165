"""Parameters of presets in the form: words, groups, what stands first."""

from __future__ import annotations

from training.catalog import param_labels
from training.presets.catalog import PRESETS


def test_training_form_names_parameters_in_words_with_their_code_and_by_group(as_alice, machine, cells):
    page = as_alice.get("/training/new/").content.decode()

    assert 'Learning rate <code class="field-code">lr</code>' in page
    assert page.index("<h3>Duration</h3>") < page.index("<h3>Optimization</h3>")
    assert 'data-default="0.003"' in page


def test_training_form_shows_the_time_budget_above_the_folded_parameters(as_alice, machine, cells):
    page = as_alice.get("/training/new/").content.decode()
    parameters = page.index("<summary>Parameters</summary>")

    assert page.index('name="detect__budget_minutes"') < parameters < page.index('name="detect__epochs"')
    assert page.count('name="detect__budget_minutes"') == 1
    assert 'data-value="30">30 min</button>' in page
    assert page.count("<summary>Parameters</summary>") == len(PRESETS)


def test_every_parameter_has_a_label_and_every_group_a_heading():
    params = [param for preset in PRESETS.values() for param in preset.parameters]

    assert {param.name for param in params} == set(param_labels.LABELS)
    assert {param.group for param in params} == set(param_labels.GROUPS)


def test_presets_put_a_parameter_into_the_same_group():
    groups: dict[str, set[str]] = {}
    for preset in PRESETS.values():
        for param in preset.parameters:
            groups.setdefault(param.name, set()).add(param.group)

    assert {name: found for name, found in groups.items() if len(found) > 1} == {}

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

    assert page.index('name="detect__budget_minutes"') < page.index("Parameters of Object detector")
    assert page.count('name="detect__budget_minutes"') == 1
    assert page.index("Parameters of Object detector") < page.index('name="detect__epochs"')


def test_every_parameter_of_every_preset_has_words_and_one_group():
    names = {param.name for preset in PRESETS.values() for param in preset.parameters}
    grouped = [name for _label, group in param_labels.GROUPS for name in group]

    assert names <= set(param_labels.LABELS)
    assert sorted(grouped) == sorted(param_labels.LABELS)

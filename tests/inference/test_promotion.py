"""Promotion by rule: an evaluation that shows enough gives alias and stage, once; one that does not says why."""

from __future__ import annotations

import json

import pytest

from accounts.models import UserGroup
from aiplatform.lib.errors import Invalid
from inference.evaluation import promotion
from inference.evaluation.kind import EvaluationKind
from inference.evaluation.models import Evaluation, PromotionRule, PromotionVerdict
from inference.registry import aliases, history, stages
from inference.registry import registration as registry
from inference.registry.models import ModelAlias, ModelVersion
from tests.factories import models as factory
from tests.inference import judged

pytestmark = pytest.mark.django_db


@pytest.fixture
def data(alice, tmp_path):
    return judged.dataset_version(alice, tmp_path / "data")


@pytest.fixture
def version(alice, tmp_path):
    return factory.model_version(alice, tmp_path)


def rule(version, data, by, **fields):
    options = {"metric": "ap50", "bound": 0.1, "split": "test", "gives_alias": "champion", **fields}
    return promotion.add(model=version.model, by=by, version=data, **options)


def ended(version, data, owner, **metrics):
    """An evaluation whose job has ended, as the queue ends it; `metrics` stand in place of some of its figures."""
    made = judged.judged(owner, version, data)
    if metrics:
        Evaluation.objects.filter(pk=made.pk).update(metrics={**made.metrics, **metrics})
    made.refresh_from_db()
    promotion.judge(made)
    return made


def verdict_code(evaluation):
    return PromotionVerdict.objects.get(evaluation=evaluation).message.code


def champion(version):
    alias = ModelAlias.objects.filter(model=version.model, name="champion").first()
    return alias and alias.version


def test_rule_gives_alias_and_stage_once_and_says_who_what_and_why(alice, version, data):
    rule(version, data, alice, gives_stage="approved")
    made = judged.judged(alice, version, data)
    attempt = made.job.attempts.get()

    EvaluationKind().ended(made.job, attempt)
    EvaluationKind().ended(made.job, attempt)  # the queue may say it twice

    version.refresh_from_db()
    acts = [e for e in history.list_entries(version.model) if e.verb in ("model_alias_moved", "model_stage_moved")]
    assert (champion(version), version.stage) == (version, "approved")
    assert PromotionVerdict.objects.get().promoted
    assert len(acts) == 2
    assert {e.actor for e in acts} == {"alice"}
    assert all(e.facts["rule"] == "ap50 ≥ 0.1" and e.facts["evaluation"] == made.job.name for e in acts)


def test_rule_that_is_missed_gives_nothing_and_says_why(alice, version, data, as_alice):
    rule(version, data, alice, bound=0.99)

    made = ended(version, data, alice, ap50=0.5)

    assert (champion(version), verdict_code(made)) == (None, "promotion.missed")
    sentence = "Not promoted: AP50 is 0.5000; at least 0.99 is required."
    assert sentence in as_alice.get(f"/models/{version.model_id}/rules/").content.decode()
    assert sentence in as_alice.get(f"/evaluations/{made.pk}/").content.decode()


def test_rule_at_most_is_for_losses(alice, version, data):
    rule(version, data, alice, metric="ap75", bound=0.2, at_least=False)

    assert verdict_code(ended(version, data, alice, ap75=0.3)) == "promotion.exceeded"
    assert verdict_code(ended(version, data, alice, ap75=0.2)) == "promotion.given"


def test_rule_asks_for_better_than_the_alias_on_the_same_data(alice, version, data, tmp_path):
    rule(version, data, alice, better_than="champion")
    second, third = (factory.model_version(alice, tmp_path, model=version.model) for _ in range(2))

    assert verdict_code(ended(version, data, alice, ap50=0.6)) == "promotion.given"  # nothing to beat yet
    assert verdict_code(ended(version, data, alice, ap50=0.7)) == "promotion.is_it"
    assert verdict_code(ended(second, data, alice, ap50=0.7)) == "promotion.not_better"
    assert champion(version) == version
    assert verdict_code(ended(second, data, alice, ap50=0.71)) == "promotion.given"
    assert champion(version) == second
    aliases.assign(version=third, name="champion", by=alice)
    assert verdict_code(ended(version, data, alice, ap50=0.9)) == "promotion.not_measured"


def test_rule_is_silent_about_other_data_and_other_splits(alice, version, data, tmp_path):
    rule(version, data, alice, split="train")
    other = judged.dataset_version(alice, tmp_path / "other", number=2)
    rule(version, other, alice)

    ended(version, data, alice)

    assert not PromotionVerdict.objects.exists()


def test_rule_trusts_only_evaluations_of_people_who_may_edit_the_model(alice, bob, version, data):
    registry.edit(model=version.model, description="", visibility="public")
    rule(version, data, alice)
    made = judged.judged(alice, version, data)
    type(made.job).objects.filter(pk=made.job_id).update(owner=bob)

    promotion.judge(Evaluation.objects.get(pk=made.pk))

    assert (champion(version), verdict_code(made)) == (None, "promotion.owner")


def test_scripts_of_others_neither_approve_nor_set_what_has_to_be_beaten(alice, olga, bob, version, data, tmp_path):
    rule(version, data, alice, better_than="champion")
    second = factory.model_version(alice, tmp_path, model=version.model)
    ended(version, data, alice, ap50=0.6)
    lie = judged.judged(bob, version, data)
    Evaluation.objects.filter(pk=lie.pk).update(is_scripted=True, metrics={"ap50": 0.0})

    assert verdict_code(ended(second, data, alice, ap50=0.5)) == "promotion.not_better"

    PromotionRule.objects.update(better_than="", gives_stage="approved")
    hers = judged.judged(olga, second, data)  # she may edit it, but the rule approves in the name of alice
    Evaluation.objects.filter(pk=hers.pk).update(is_scripted=True, metrics={"ap50": 1.0})
    promotion.judge(Evaluation.objects.get(pk=hers.pk))
    assert verdict_code(hers) == "promotion.own_script"


def test_rule_ends_with_the_rights_of_who_made_it(alice, olga, version, data):
    rule(version, data, olga)
    type(olga).objects.filter(pk=olga.pk).update(is_active=False)

    assert verdict_code(ended(version, data, alice)) == "promotion.author"


def test_rule_counts_only_complete_evaluations(alice, version, data, monkeypatch):
    rule(version, data, alice)
    monkeypatch.setattr(promotion.results, "load", lambda evaluation: {"complete": False})

    assert verdict_code(ended(version, data, alice)) == "promotion.incomplete"


def test_rule_does_not_go_round_another_persons_approval(alice, version, data):
    group = UserGroup.objects.create(name="Lab", description="All of us")
    group.users.add(alice)
    stages.ask_in_group(group=group, second_person=True, by=alice)
    rule(version, data, alice, gives_stage="approved")

    made = ended(version, data, alice)

    verdict = PromotionVerdict.objects.get(evaluation=made)
    assert (verdict.message.code, verdict.message.facts["code"]) == ("promotion.refused", "needs_another_person")
    assert (champion(version), ModelVersion.objects.get(pk=version.pk).stage) == (None, "candidate")  # both or none


def test_rule_refuses_what_could_never_act_at_once(alice, version, data):
    with pytest.raises(Invalid) as refused:
        rule(version, data, alice, metric="beauty", split="moon", better_than="V1", gives_alias="", bound=float("nan"))

    assert {error.blamed for error in refused.value.every} == {"metric", "bound", "split", "better_than", "gives_alias"}
    assert not PromotionRule.objects.exists()


def test_rules_are_made_and_removed_by_editors_on_page_and_api(as_alice, as_bob, version, data):
    model = version.model_id
    sent = {"metric": "ap50", "bound": 0.5, "version": data.pk, "split": "test", "gives_alias": "champion"}
    address = f"/api/v1/models/{model}/rules/"

    made = as_alice.post(address, json.dumps(sent), content_type="application/json")
    form = as_alice.post(f"/models/{model}/rules/new/", {**sent, "at_least": "1"})
    wrong = as_alice.post(f"/models/{model}/rules/new/", {**sent, "at_least": "1", "gives_alias": "No"})

    assert (made.status_code, form.status_code, wrong.status_code) == (201, 302, 422)
    assert len(as_alice.get(address).json()) == 2
    assert as_bob.get(address).status_code == 404
    assert as_bob.post(address, json.dumps(sent), content_type="application/json").status_code == 404
    assert as_bob.get(f"/models/{model}/rules/").status_code == 404
    assert as_alice.delete(f"{address}{made.json()['id']}/").status_code == 204
    assert as_alice.delete(f"{address}{made.json()['id']}/").status_code == 404
    left = PromotionRule.objects.get()
    assert as_alice.post(f"/models/{model}/rules/remove/", {"rule": left.pk}).status_code == 302
    assert not PromotionRule.objects.exists()


def test_page_shows_the_label_of_the_metric_and_the_latest_result_of_a_rule(alice, as_alice, version, data):
    rule(version, data, alice)
    assert "No evaluation yet" in as_alice.get(f"/models/{version.model_id}/rules/").content.decode()

    ended(version, data, alice, ap50=0.5)

    html = as_alice.get(f"/models/{version.model_id}/rules/").content.decode()
    assert "AP50 ≥ 0.1" in html
    assert "No evaluation yet" not in html
    assert "Promoted" in html


def test_new_rule_offers_the_aliases_of_the_model(alice, as_alice, version):
    aliases.assign(version=version, name="staging", by=alice)

    page = as_alice.get(f"/models/{version.model_id}/rules/new/").content.decode()

    assert '<datalist id="model-aliases"><option value="staging"></option></datalist>' in page
    assert page.count('list="model-aliases"') == 2


def test_new_rule_starts_with_the_data_of_the_newest_evaluation(alice, as_alice, version, data):
    made = ended(version, data, alice)

    form = as_alice.get(f"/models/{version.model_id}/rules/new/").context["form"]

    assert form["version"].value() == data.pk
    assert form["split"].value() == made.split
    assert form.fields["metric"].choices[0] == ("ap50", "AP50")
    assert "threshold" not in dict(form.fields["metric"].choices)

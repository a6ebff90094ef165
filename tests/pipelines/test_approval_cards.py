"""What an approval shows: objects, and the metrics of the candidate beside those in production."""

import pytest

from inference.evaluation.models import Evaluation
from inference.pipelines import approval_cards, graph
from inference.serving import endpoints
from tests.inference import judged
from tests.pipelines.made import command

pytestmark = pytest.mark.django_db

SPEC = graph.parse(
    {"format": 1, "steps": {
        "train": command(), "evaluate": command(after=["train"]),
        "ask": {"kind": "approve", "with": {"question": "Deploy?"}, "after": ["evaluate"]},
    }}
)  # fmt: skip


@pytest.fixture
def evaluation(alice, tmp_path):
    return judged.evaluation(alice, tmp_path)


def steps_of(evaluation, **more):
    model = {"type": "model", "id": evaluation.model_version_id, "label": "net v1"}
    figures = {"type": "figures", "values": {"ap50": 0.5}, "evaluation": evaluation.pk}
    return {"train": {"outputs": {"model": model}}, "evaluate": {"outputs": {"figures": figures | more}}}


def test_card_lists_objects_and_metrics_of_the_catalogue(evaluation, alice):
    Evaluation.objects.filter(pk=evaluation.pk).update(metrics={"map": 0.4, "ap50": 0.71234, "images": 9})

    card = approval_cards.build(SPEC, "ask", steps_of(evaluation), alice)

    assert [(row["kind"], row["text"]) for row in card["objects"]] == [("Model", "net v1")]
    assert [(row["label"], row["value"]) for row in card["metrics"]] == [("mAP", "0.400"), ("AP50", "0.712")]
    assert (card["reference"], card["metrics"][0]["difference"]) == ("", "")


def test_card_compares_with_the_deployed_model_on_the_same_data(evaluation, alice, tmp_path):
    other = judged.factory.model_version(alice, tmp_path, name="served")
    earlier = Evaluation.objects.get(pk=evaluation.pk)
    earlier.pk, earlier.job, earlier.model_version = None, judged_job(evaluation), other
    earlier.metrics = {"map": 0.5, "ap50": 0.7}
    earlier.save()
    Evaluation.objects.filter(pk=evaluation.pk).update(metrics={"map": 0.4, "ap50": 0.71234})
    assert approval_cards.build(SPEC, "ask", steps_of(evaluation), alice)["reference"] == ""

    endpoints.create(user=alice, name="line", model_version=other)

    card = approval_cards.build(SPEC, "ask", steps_of(evaluation), alice)
    assert card["reference"] == str(other)
    assert [(row["reference"], row["difference"]) for row in card["metrics"]] == [
        ("0.500", "-0.100"), ("0.700", "+0.012"),
    ]  # fmt: skip
    assert [row["is_better"] for row in card["metrics"]] == [False, True]


def test_card_hides_what_the_reader_may_not_see(evaluation, bob):
    card = approval_cards.build(SPEC, "ask", steps_of(evaluation), bob)

    assert (card["evaluation"], card["metrics"]) == (None, [])
    assert [row["url"] for row in card["objects"]] == [""]


def judged_job(evaluation):
    job = type(evaluation.job).objects.get(pk=evaluation.job_id)
    job.pk = None
    job.name = "earlier"
    job.save()
    return job

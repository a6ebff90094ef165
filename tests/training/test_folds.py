"""Cross-validation: a training for each fold, and what all of them reached."""

from __future__ import annotations

import pytest

from aiplatform.lib.errors import DomainError
from tests.factories import training as factory
from training.runs import folds, jobs, previews
from training.runs.drafts import TrainingRequest
from training.runs.models import TrainingJob

pytestmark = pytest.mark.django_db


@pytest.fixture
def three(alice, machine, cells):
    """The trainings of three folds."""
    factory.training(alice, data=cells, preset="detect", params={"folds": 3, "lr": 0.005})
    return list(TrainingJob.objects.order_by("pk"))


def test_cross_validation_queues_a_training_for_each_fold_in_one_array(three):
    assert [row.params["fold"] for row in three] == [1, 2, 3]
    assert [row.job.spec["params"]["fold"] for row in three] == [1, 2, 3]
    assert [row.job.array_index for row in three] == [1, 2, 3]
    assert len({row.job.array_id for row in three}) == 1
    assert {row.params["lr"] for row in three} == {0.005}


def test_one_fold_can_be_trained_by_itself_and_cloned(alice, machine, cells, three):
    alone = factory.training(alice, data=cells, preset="detect", params={"folds": 3, "fold": 2})

    assert alone.job.array_id is None
    assert jobs.as_request(three[1])["params"] == {"folds": 3, "fold": 2, "lr": 0.005}
    assert folds.together(alone, user=alice) == []


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"folds": 1}, "One fold leaves no training data"),
        ({"folds": 3, "fold": 4}, "Fold 4 of 3 does not exist"),
        ({"fold": 1}, "Fold 1 of 0 does not exist"),
        ({"folds": 2, "group_by": "(a"}, r"\(a is neither folder nor a regular expression: missing \)"),
        ({"folds": 2, "group_by": "a" * 201}, "for image groups can have at most 200 characters"),
        ({"folds": 21}, "folds must be an integer from 0 to 20"),
    ],
)
def test_what_is_no_cross_validation_is_refused(alice, machine, cells, params, says):
    with pytest.raises(DomainError, match=says):
        jobs.submit(user=alice, request=TrainingRequest(version=cells, preset="detect", params=params))
    assert not TrainingJob.objects.exists()


def test_folds_answer_with_mean_and_spread_of_what_has_ended(api, alice, three):
    for row, figure in zip(three[:2], (0.8, 0.9), strict=True):
        factory.move(row, "succeeded")
        TrainingJob.objects.filter(pk=row.pk).update(metrics={"val/ap50": figure, "val/ap50/cell": 0.1, "steps": 9})

    said = api.get(f"/api/v1/training/jobs/{three[2].pk}/cross-validation/").json()

    assert [(row["fold"], row["state"]) for row in said["folds"]] == [(1, "succeeded"), (2, "succeeded"), (3, "queued")]
    (figure,) = said["figures"]
    assert (figure["key"], figure["folds"]) == ("val/ap50", 2)
    assert figure["mean"] == pytest.approx(0.85)
    assert figure["spread"] == pytest.approx(0.0707, abs=1e-4)


def test_page_of_a_fold_shows_all_folds(as_alice, three):
    factory.move(three[0], "succeeded")
    TrainingJob.objects.filter(pk=three[0].pk).update(metrics={"val/ap50": 0.8})

    page = as_alice.get(f"/training/{three[1].pk}/").content.decode()

    assert "Cross-validation" in page
    assert "0.8000" in page
    assert page.index(f"/training/{three[0].pk}/") < page.index("Mean ± standard deviation")


def test_preview_of_a_cross_validation_looks_at_one_fold(alice, machine, cells):
    request = TrainingRequest(version=cells, preset="detect", params={"folds": 4})

    previews.preview(user=alice, request=request)

    assert [(row.params["folds"], row.params["fold"]) for row in TrainingJob.objects.all()] == [(4, 0)]

    jobs.submit(
        user=alice,
        request=TrainingRequest(
            version=cells, preset="detect", params=jobs.as_request(TrainingJob.objects.get())["params"]
        ),
    )  # a clone of it
    assert sorted(row.params["fold"] for row in TrainingJob.objects.all()) == [0, 1, 2, 3, 4]

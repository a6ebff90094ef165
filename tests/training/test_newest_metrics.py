"""The newest loss and learning rate of trainings, in the list and in the API."""

from __future__ import annotations

from django.utils.timezone import now

from tests.factories import training as factory
from workers.core.models import Attempt, Curve


def test_list_and_api_show_the_newest_loss_and_learning_rate_of_the_newest_attempt(
    as_alice, alice, api, machine, cells
):
    trained = factory.training(alice, data=cells, params={"lr": 0.01})
    factory.move(trained, "succeeded")
    silent = factory.training(alice, name="silent", data=cells)
    attempt = trained.job.attempts.get()
    other = Attempt.objects.create(job=trained.job, number=attempt.number + 1)  # not the one that the job names
    for run, values in ((attempt, {"loss": 0.25, "train/lr": 0.004}), (other, {"train/loss": 9.0, "lr": 9.0})):
        for key, value in values.items():
            ends = {"lowest": value, "lowest_step": 1, "highest": value, "highest_step": 1}
            Curve.objects.create(attempt=run, key=key, value=value, count=1, step=1, at=now(), **ends)

    page = as_alice.get("/training/").content.decode()
    listed = {row["id"]: (row["loss"], row["lr"]) for row in api.get("/api/v1/training/jobs/").json()["results"]}
    one = api.get(f"/api/v1/training/jobs/{trained.pk}/").json()

    assert listed == {trained.pk: (0.25, 0.004), silent.pk: (None, None)}
    assert (one["loss"], one["lr"]) == (0.25, 0.004)
    assert ("loss 0.25" in page, "rate 0.004" in page, "loss 9" in page) == (True, True, False)

"""Studies at the command line."""

from __future__ import annotations

import pytest

from tests.factories import work
from tests.studies.helpers import complete, live
from training.runs.models import TrainingJob
from training.studies import advancing
from training.studies.models import Study
from workers.core.models import Job


@pytest.mark.django_db
def test_terminal_begins_shows_and_steers_a_study(real_aip, alice, capfd):
    work.node(cores=4)
    words = ("study", "create", "hunt", "--command", "true", "--gpus", 0, "--cpus", 1, "--search", "x = -5 .. 5.0")
    assert real_aip(alice, *words, "--objective", "loss:min", "--trials", 2, "--first", "x=1.5") == 0
    made = Study.objects.get()
    advancing.advance(made.pk)
    for trial in live(made):
        complete(trial, trial.params["x"] ** 2)
    advancing.advance(made.pk)
    capfd.readouterr()

    codes = [real_aip(alice, "study", verb, "hunt") for verb in ("show", "trials", "importance", "wait")]
    codes.append(real_aip(alice, "study", "best", "hunt", "-p", "epochs=3"))
    codes.append(real_aip(alice, "study", "list"))
    printed = capfd.readouterr().out
    refused = real_aip(alice, "study", "pause", "hunt")

    assert codes == [0, 0, 0, 0, 0, 0]
    assert "2.25" in printed
    assert TrainingJob.objects.count() == 3
    assert Job.objects.filter(name="hunt_best").exists()
    assert refused == 1

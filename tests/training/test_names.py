"""Names of trainings: as people write them, or made of what is trained on."""

from __future__ import annotations

import pytest

from training.runs import jobs
from training.runs.drafts import TrainingRequest

pytestmark = pytest.mark.postgres

API = "/api/v1/training/jobs/"


def test_training_submit_without_a_name_takes_one_of_data_and_preset(alice, machine, cells):
    names = [jobs.submit(user=alice, request=TrainingRequest(name="", version=cells)).job.name for _ in range(3)]

    assert names == ["cells_detect", "cells_detect_2", "cells_detect_3"]


@pytest.mark.parametrize("name", ["two words", "细胞 1", "run-3 (long)", "v1.2+lr"])
def test_training_submit_takes_names_as_people_write_them(api, machine, cells, name):
    made = api.post(API, {"name": name, "version": cells.pk}, format="json")

    assert made.json()["name"] == name

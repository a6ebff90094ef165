"""`aip evaluate sets` against the real API."""

from __future__ import annotations

import pytest

from inference.evaluation import evaluations
from inference.evaluation.models import Evaluation, EvaluationSet
from tests.factories import models as factory
from tests.inference import judged

pytestmark = pytest.mark.django_db


def test_set_verbs_save_change_use_and_delete(real_aip, alice, tmp_path, capfd):
    model = factory.model_version(alice, tmp_path)
    data = judged.dataset_version(alice, tmp_path / "data")
    begun = evaluations.submit(user=alice, model_version=model, version=data, split="test")

    codes = [
        real_aip(alice, "evaluations", "sets", "save", "careful", "--evaluation", begun.pk, "-p", "batch=3"),
        real_aip(alice, "evaluate", "sets", "change", "careful", "--split", "val", "--visibility", "public"),
        real_aip(alice, "evaluate", "sets", "list", "-q", "care"),
        real_aip(alice, "evaluate", "start", model.pk, "--set", "careful", "--split", "test"),
    ]
    printed = capfd.readouterr()

    row, made = EvaluationSet.objects.get(), Evaluation.objects.order_by("-pk").first()
    assert codes == [0, 0, 0, 0], printed.err
    assert (row.split, row.visibility, row.params["batch"]) == ("val", "public", 3)
    assert (made.version, made.split, made.params["batch"]) == (data, "test", 3)
    real_aip(alice, "evaluate", "sets", "delete", "careful")
    assert not EvaluationSet.objects.exists()

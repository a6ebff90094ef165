"""Versions of a model beside each other."""

from __future__ import annotations

import pytest

from aiplatform.lib.errors import Invalid, NotFound
from inference.registry import version_labels, version_tables
from inference.registry.models import ModelVersion, Stage
from tests.factories import models as factory

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


@pytest.fixture
def three(alice, tmp_path):
    """Versions 1 to 3 of one model; the third is archived."""
    first = factory.model_version(alice, tmp_path / "1")
    made = [first, *(factory.model_version(alice, tmp_path / str(n), model=first.model) for n in (2, 3))]
    for number, version in enumerate(made, 1):
        facts = version.facts | {"speed": {"ms": 10.0 * number, "gflops": 2.0, "processor": "Test <b>"}}
        ModelVersion.objects.filter(pk=version.pk).update(
            metrics={"ap50": round(0.8 + number / 100, 2)}, params={"lr": number / 10, "flip": True}, facts=facts,
            dataset_label=f"cells v{number}", size_bytes=1000 * number,
        )  # fmt: skip
    ModelVersion.objects.filter(pk=made[2].pk).update(stage=Stage.ARCHIVED)
    return first.model


def test_versions_in_use_are_compared_with_the_oldest_of_them(three):
    versions, base = version_tables.select_versions(three, [])
    rows = {(row.kind, row.key): row for row in version_tables.rows(versions, base)}

    assert ([version.number for version in versions], base.number) == ([2, 1], 1)
    assert rows["figure", "ap50"].values == [0.82, 0.81]
    assert rows["figure", "ap50"].differences == [pytest.approx(0.01), None]
    assert rows["cost", "ms"].differences == [10.0, None]
    assert (rows["param", "flip"].differs, rows["param", "flip"].differences) == (False, [None, None])
    assert rows["about", "dataset"].values == ["cells v2", "cells v1"]
    assert not version_tables.same_data(versions)


def test_versions_that_are_not_there_and_too_many_are_refused(three):
    with pytest.raises(NotFound, match="no version 9"):
        version_tables.select_versions(three, [1, 9])
    with pytest.raises(Invalid, match="at most 8"):
        version_tables.select_versions(three, range(1, 10))
    with pytest.raises(Invalid, match="baseline must be one"):
        version_tables.select_versions(three, [1, 2], base=3)


def test_page_and_api_say_the_same_and_escape_what_models_say(api, as_alice, client, bob, three):
    answer = api.get(f"/api/v1/models/{three.pk}/comparison/?version=1&version=3&base=3").json()
    page = as_alice.get(f"/models/{three.pk}/all/?compare=1&compare=3&base=3&all=1").content.decode()
    less = as_alice.get(f"/models/{three.pk}/all/").content.decode()

    rows = {row["key"]: row for row in answer["rows"]}
    assert (answer["versions"], answer["base"]) == ([1, 3], 3)
    assert rows["size_bytes"]["differences"] == [-2000.0, None]
    assert "−20" in page  # milliseconds
    assert "Test &lt;b&gt;" in page
    assert "trained on different data" in page
    assert "Test &lt;b&gt;" not in less  # it does not differ
    assert api.get(f"/api/v1/models/{three.pk}/comparison/?version=x").status_code == 400
    assert api.get(f"/api/v1/models/{three.pk}/comparison/?version=9").status_code == 404
    client.force_login(bob)
    assert client.get(f"/models/{three.pk}/all/").status_code == 404


def test_lines_begin_with_metrics_and_mark_the_better_values(three):
    versions, base = version_tables.select_versions(three, [])
    for version in versions:
        version.dataset_label = "cells"
        version.metrics |= {"val/loss": 1.0 - version.number / 10, "epochs": version.number}
        version.facts |= {"inputs": [{"name": "images", "shape": [1, 3, 128, 160]}]}
        version.facts |= {"outputs": [{"name": "boxes", "shape": [1, 100, 4]}]}

    lines = version_labels.lines(versions, base, everything=True)

    best = {line.label: [is_best for _value, _change, is_best in line.cells] for line in lines}
    assert best["ap50"] == [True, False]
    assert best["Validation loss"] == [True, False]
    assert best["Epochs completed"] == [False, False]
    assert best["Size"] == [False, True]
    assert [line.kind for line in lines].index("about") > [line.kind for line in lines].index("figure")
    values = {line.label: [value for value, _change, _best in line.cells] for line in lines}
    assert values["Input size (px)"] == ["160 × 128", "160 × 128"]
    assert "boxes" not in str(values)


def test_page_says_why_versions_cannot_be_compared(as_alice, three):
    page = as_alice.get(f"/models/{three.pk}/all/?compare=1&base=2", follow=True)

    assert page.status_code == 200
    assert "The baseline must be one of the compared versions." in page.content.decode()

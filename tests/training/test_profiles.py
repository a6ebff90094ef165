"""Profiles of trainings: queued as jobs of their own, read strictly, with advice by rule."""

from __future__ import annotations

import pytest

from aiplatform.lib.errors import Invalid
from tests.factories import training as factory
from tests.factories.profiles import GPU, changed, wrote
from training.runs import previews, profiles
from training.runs.kind import TrainingKind
from training.runs.models import TrainingJob


def codes(about):
    return [one.code for one in profiles.parse(about).advice]


def test_a_step_that_does_what_it_is_for_needs_no_advice():
    found = profiles.parse(GPU)

    assert found.advice == []
    assert sum(share for _part, _word, share in found.shares) == pytest.approx(1)
    assert [one.share for one in found.operations] == [0.2] * 5
    assert {bar.row for bar in found.bars} == {0, 1}
    assert all(bar.x + bar.width <= 960.01 for bar in found.bars)


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ({"shares": {**GPU["shares"], "wait": 0.3, "other": 0.0}}, "waits"),
        ({"kernels": 900.0, "device_busy_ms": 9.0}, "many_kernels"),
        ({"kernels": 100.0, "device_busy_ms": 20.0}, "idle"),
        ({"precision": "float32"}, "float32"),
        (
            {
                "operations": [
                    {**GPU["operations"][0], "name": "Memcpy HtoD"},
                    *GPU["operations"][1:4],
                ]
            },
            "copies",
        ),
        (
            {
                "operations": [
                    {**GPU["operations"][0], "self_device_ms": 100.0},
                    *GPU["operations"][1:],
                ]
            },
            "one_operation",
        ),
        ({"shares": {**GPU["shares"], "optimizer": 0.25, "other": 0.0}}, "optimizer"),
    ],
)
def test_each_rule_speaks_where_it_applies(facts, code):
    assert codes(changed(**facts)) == [code]
    assert "%" not in profiles.parse(changed(**facts)).advice[0].text.replace(" %", "")


def test_cores_are_not_advised_like_a_card():
    about = changed(kind="cpu", precision="float32", kernels=0.0, device_busy_ms=0.0, memory_mib=None)

    assert codes(about) == []
    assert profiles.parse(about).memory_mib is None


@pytest.mark.parametrize(
    "broken",
    [
        {}, [], {"shares": 3}, changed(step_ms="x"), changed(step_ms=float("nan")), changed(step_ms=1e300),
        changed(operations={"a": 1}), changed(operations=[{"name": "x"}]), changed(timeline=[{"step": "a"}]),
        changed(kernels=None), changed(shares={"wait": "much"}),
    ],
)  # fmt: skip
@pytest.mark.django_db
def test_whatever_a_job_wrote_breaks_no_page(alice, machine, cells, client, broken):
    training = factory.training(alice, data=cells, name="slow", state="running", preset="detect")
    look = previews.profile(training, by=alice)
    wrote(look, broken)
    client.force_login(alice)

    assert profiles.read(look) is None
    assert client.get(f"/training/{training.pk}/metrics/").status_code == 200


@pytest.mark.django_db
def test_profile_is_a_job_on_what_the_training_was_given(api, alice, machine, cells):
    training = factory.training(
        alice, data=cells, name="slow", state="running", preset="detect", cpus=2.0, params={"lr": 0.02}
    )

    answer = api.post(f"/api/v1/training/jobs/{training.pk}/profile/", {"steps": 7})

    assert answer.status_code == 201
    look = TrainingJob.objects.get(pk=answer.json()["id"])
    assert (look.parent, look.extra, look.job.name, look.job.cpus) == (
        training,
        {"show_profile": 7},
        "slow_profile",
        2.0,
    )
    assert look.params["lr"] == 0.02
    assert previews.handed_over(look, None) == {"AIP_SHOW": "profile", "AIP_SHOW_STEPS": "7"}
    assert not TrainingKind().capabilities(look.job).pause
    assert list(TrainingJob.objects.without_looks()) == [training]
    assert api.post(f"/api/v1/training/jobs/{training.pk}/profile/", {"steps": 101}).status_code == 400
    with pytest.raises(Invalid, match=r"Steps can be profiled only for presets with a neural network."):
        previews.profile(look, by=alice)


@pytest.mark.django_db
def test_page_shows_the_profile_with_every_name_escaped(as_alice, alice, bob, client, machine, cells):
    training = factory.training(alice, data=cells, name="slow", state="running", preset="detect")
    assert as_alice.post(f"/training/{training.pk}/profile/", {"steps": "5"}).status_code == 302
    look = previews.latest_profile(training, alice)
    waiting = as_alice.get(f"/training/{training.pk}/metrics/").content.decode()
    operations = [
        {**GPU["operations"][0], "name": "<script>alert(1)</script>", "self_device_ms": 500.0},
        *GPU["operations"],
    ]
    wrote(look, changed(operations=operations, precision="float32"))

    page = as_alice.get(f"/training/{training.pk}/metrics/").content.decode()
    own = as_alice.get(f"/training/{look.pk}/metrics/").content.decode()

    assert "The profile appears here when its steps are complete." in waiting
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "bfloat16, several times as fast" in page
    assert "100.0 ms per step on Test card" in own
    assert as_alice.get(f"/training/{look.pk}/images/").status_code == 302
    client.force_login(bob)
    assert client.post(f"/training/{training.pk}/profile/", {"steps": "5"}).status_code == 404

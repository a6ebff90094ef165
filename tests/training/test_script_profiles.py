"""Profiles that scripts of one's own left: read strictly, on the page of a preset's, with advice for scripts."""

from __future__ import annotations

import json

import pytest

from aiplatform.lib.errors import Invalid
from tests.factories import training as factory
from tests.factories.profiles import GPU, SCRIPT, of_a_script, wrote
from training.runs import previews, profiles


def codes(about):
    return [one.code for one in profiles.parse(about).advice]


@pytest.fixture
def own(alice, machine, cells, code):
    """A training of own code, at work."""
    return factory.training(alice, name="own", data=cells, code=code, start_file="train.py", state="running")


@pytest.mark.parametrize(
    ("facts", "code", "words"),
    [
        ({}, "no_workers", "num_workers=4"),
        ({"loader": {**SCRIPT["loader"], "workers": 3}}, "few_workers", "num_workers=3"),
        ({"loader": {"kind": "list"}}, "waits", "of a step is spent waiting for the next batch. Load it ahead in"),
        ({"shares": {"wait": 0.1, "optimizer": 0.3}}, "optimizer", "fused=True"),
    ],
)
def test_rules_speak_of_what_a_script_has(facts, code, words):
    (found,) = profiles.parse(of_a_script(**facts)).advice

    assert (found.code, words in found.text) == (code, True)
    assert "batch_size" not in found.text


@pytest.mark.parametrize(
    ("facts", "code", "words"),
    [
        ({"kernels": 900.0, "device_busy_ms": 9.0}, "many_kernels", "torch.compile"),
        ({"kernels": 100.0, "device_busy_ms": 20.0}, "idle", "Larger batches"),
        ({"precision": "float32"}, "float32", "torch.autocast"),
        ({"operations": [{**GPU["operations"][0], "name": "Memcpy HtoD"}, *GPU["operations"][1:4]]}, "not_pinned",
         "pin_memory=True"),
        ({"operations": [{**GPU["operations"][0], "self_device_ms": 90.0}]}, "one_operation", "of the time is used by"),
    ],
)  # fmt: skip
def test_rules_speak_of_what_a_script_has_on_a_card(facts, code, words):
    about = of_a_script(**{name: GPU[name] for name in ("kind", "precision", "kernels", "device_busy_ms", "shares")})

    (found,) = profiles.parse(about | facts).advice

    assert (found.code, words in found.text) == (code, True)
    assert "batch_size" not in found.text


def test_operations_are_not_blamed_for_what_a_step_waits_for():
    one = {**GPU["operations"][0], "self_cpu_ms": 90.0}

    assert codes(of_a_script(operations=[one], shares={"wait": 0.7})) == ["no_workers"]
    assert codes(of_a_script(operations=[one], shares={"wait": 0.1})) == ["one_operation"]


@pytest.mark.django_db
def test_own_code_has_no_steps_to_profile_from_outside(alice, api, own):
    with pytest.raises(Invalid, match="from aip import profile"):
        previews.profile(own, by=alice)

    assert api.post(f"/api/v1/training/jobs/{own.pk}/profile/", {}).status_code == 400


@pytest.mark.django_db
def test_page_of_own_code_shows_the_lines_to_copy_until_it_has_left_a_profile(as_alice, own):
    before = as_alice.get(f"/training/{own.pk}/metrics/").content.decode()
    awaited = as_alice.get(f"/training/{own.pk}/metrics/?profile=awaited")
    wrote(own, of_a_script())
    came = as_alice.get(f"/training/{own.pk}/metrics/?profile=awaited").content.decode()
    after = as_alice.get(f"/training/{own.pk}/metrics/").content.decode()

    assert "from aip import profile" in before
    assert (awaited.status_code, awaited.content) == (204, b"")
    assert "100.0 ms per step on cpu" in came
    for page in (before, after):
        assert f'action="/training/{own.pk}/profile/"' not in page
    assert "100.0 ms per step on cpu: 10 steps." in after
    assert "Batches of 32." in after
    assert "Precision: float32." in after
    assert "num_workers=4" in after
    assert "optimizer" in after
    assert "augment" in after
    assert "from aip import profile" not in after
    assert f"/training/{own.pk}/files/?attempt=1" in after


@pytest.mark.django_db
def test_profile_of_own_code_is_that_of_the_newest_attempt_that_left_one(alice, own):
    wrote(own, of_a_script(step_ms=70.0))
    third = [factory.move(own, "running", attempt=number) for number in (2, 3)][-1]
    first = profiles.require_profile(own, alice)
    (third.outputs / "profile").mkdir()
    (third.outputs / "profile" / "profile.json").write_text(json.dumps(of_a_script(step_ms=50.0)))

    newest = profiles.require_profile(own, alice)
    fourth = factory.move(own, "running", attempt=4).outputs / "profile"
    fourth.mkdir()
    (fourth / "profile.json").write_text('{"source": "script"}')

    assert profiles.require_profile(own, alice) == newest
    assert (first.attempt, first.step_ms) == (1, 70.0)
    assert (newest.attempt, newest.step_ms) == (3, 50.0)


@pytest.mark.parametrize(
    "broken",
    [
        {"source": "script"}, of_a_script(known=3), of_a_script(named=[1]), of_a_script(named={"x": "much"}),
        of_a_script(named={"x": float("nan")}), of_a_script(loader=[]), of_a_script(loader={"kind": "DataLoader"}),
        of_a_script(loader={**SCRIPT["loader"], "workers": float("inf")}), of_a_script(cores="many"),
        of_a_script(profiled_step_ms="x"), of_a_script(shares=[]),
    ],
)  # fmt: skip
@pytest.mark.django_db
def test_whatever_a_script_wrote_breaks_no_page(as_alice, api, own, broken):
    wrote(own, broken)

    assert profiles.read(own) is None
    assert as_alice.get(f"/training/{own.pk}/metrics/").status_code == 200
    answer = api.get(f"/api/v1/training/jobs/{own.pk}/profile/")
    assert (answer.status_code, answer.json()["code"]) == (404, "no_profile")


@pytest.mark.django_db
def test_script_shows_no_files_of_others_and_does_not_fill_the_page(as_alice, own, tmp_path):
    (tmp_path / "secret.json").write_text(json.dumps(of_a_script()))
    folder = factory.move(own, "running").outputs / "profile"
    folder.mkdir()
    (folder / "profile.json").symlink_to(tmp_path / "secret.json")
    linked = profiles.read(own)
    (folder / "profile.json").unlink()
    (folder / "profile.json").write_text(" " * (5 << 20) + json.dumps(of_a_script()))
    huge = profiles.read(own)
    long = "<b>" * 1000
    rows = [{**GPU["operations"][0], "name": long}] * 500
    wrote(own, of_a_script(operations=rows, named={f"{number}{long}": 0.1 for number in range(50)}, device=long))

    found = profiles.read(own)

    assert (linked, huge) == (None, None)
    assert (len(found.operations), len(found.named)) == (60, 12)
    assert max(len(name) for name, _share in found.named) <= profiles.LONGEST
    assert "<b><b>" not in as_alice.get(f"/training/{own.pk}/metrics/").content.decode()


@pytest.mark.django_db
def test_api_reads_profiles_of_scripts_and_of_presets(api, alice, machine, cells, own):
    preset = factory.training(alice, data=cells, name="slow", state="running", preset="detect")
    route = "/api/v1/training/jobs/{}/profile/".format
    nobody = api.get(route(preset.pk)).json()
    look = previews.profile(preset, by=alice)
    early = api.get(route(preset.pk)).json()
    wrote(look, GPU)
    missing = api.get(route(own.pk)).json()
    wrote(own, of_a_script())

    of_preset, about = api.get(route(preset.pk)).json(), api.get(route(own.pk)).json()

    assert [one["code"] for one in (nobody, early, missing)] == ["no_profile"] * 3
    assert "from aip import profile" in missing["detail"]
    assert (of_preset["own"], of_preset["step_ms"], of_preset["advice"]) == (False, 100.0, [])
    assert (about["own"], about["attempt"], about["named"]) == (True, 1, {"augment": 0.06})
    assert about["shares"] == {"wait": 0.6, "forward": 0.1, "backward": 0.2, "other": 0.1}
    assert [one["code"] for one in about["advice"]] == ["no_workers"]
    assert len(about["operations"]) == 5


@pytest.mark.django_db
def test_profile_is_for_those_who_see_the_training(client, bob, anna, own):
    wrote(own, of_a_script())

    assert client.get(f"/training/{own.pk}/metrics/").status_code == 302
    for person, status in ((bob, 404), (anna, 403)):
        client.force_login(person)
        assert client.get(f"/training/{own.pk}/metrics/").status_code == status
        assert client.get(f"/api/v1/training/jobs/{own.pk}/profile/").status_code == status

"""The pages of trainings: who sees what, files and checkpoints, restore."""

from __future__ import annotations

import io
import json
import os
import zipfile

import pytest

from accounts.access.permissions import AI_PLATFORM, Action
from accounts.models import Role
from tests.conftest import signed_in
from tests.factories import training as factory
from training.runs import checkpoints, data_use, jobs
from training.runs.models import ParameterSet, TrainingJob
from workers.core.models import Job

TABS = ["", "log/", "metrics/", "images/", "files/", "events/", "spec/", "restore/"]


@pytest.fixture
def trained(alice, machine, cells):
    """Alice's finished training with outputs and two checkpoints."""
    training = factory.training(alice, data=cells, params={"lr": 0.01})
    run = factory.move(training, "succeeded")
    (run.outputs / "model").mkdir()
    (run.outputs / "model" / "model.onnx").write_bytes(bytes(range(256)))
    (run.outputs / "metrics.json").write_text('{"val/ap50": 0.9}')
    factory.checkpoint(run, 100, metric=0.5)
    factory.checkpoint(run, 200, metric=0.9)
    return training


@pytest.mark.parametrize("tab", TABS)
def test_training_tabs_work_for_the_owner_and_are_404_for_others(
    as_alice, as_bob, as_anna, as_olga, client, trained, tab
):
    url = f"/training/{trained.pk}/{tab}"

    assert as_alice.get(url).status_code == 200
    assert as_olga.get(url).status_code == 200
    assert as_bob.get(url).status_code == 404
    assert as_anna.get(url).status_code == 403
    assert client.get(url).url.startswith("/login/")


@pytest.mark.parametrize("route", ["", "checkpoints/", "files/", "files/content/?path=metrics.json", "files/zip/",
                                   "log/", "metrics/"])  # fmt: skip
def test_training_api_shows_strangers_nothing(api, bob, trained, route):
    url = f"/api/v1/training/jobs/{trained.pk}/{route}"

    mine = api.get(url)
    if mine.streaming:
        b"".join(mine)
    api.force_authenticate(bob)

    assert mine.status_code == 200
    theirs = api.get(url)
    assert theirs.status_code == 404
    assert theirs.json()["detail"] == api.get("/api/v1/training/jobs/99999/").json()["detail"]


@pytest.mark.parametrize("verb", ["pause", "continue", "suspend", "finish", "stop", "restore"])
def test_training_buttons_are_closed_to_strangers(api, as_bob, bob, trained, verb):
    api.force_authenticate(bob)

    assert api.post(f"/api/v1/training/jobs/{trained.pk}/{verb}/").status_code == 404
    assert as_bob.post(f"/training/{trained.pk}/{verb}/").status_code == 404
    assert Job.objects.get(pk=trained.job_id).desired == "run"


def test_training_button_that_makes_no_sense_says_why(api, trained):
    answer = api.post(f"/api/v1/training/jobs/{trained.pk}/pause/")

    assert (answer.status_code, answer.json()["code"]) == (409, "illegal_move")
    assert answer.json()["detail"]


def test_training_list_filters_searches_and_costs_few_queries(
    as_alice, alice, machine, cells, django_assert_max_num_queries
):
    for number in range(5):
        factory.training(alice, data=cells, name=f"cells_{number}")
    factory.move(TrainingJob.objects.get(job__name="cells_3"), "failed")

    with django_assert_max_num_queries(15):
        page = as_alice.get("/training/")
    found = as_alice.get("/training/?state=failed&q=cells+3")

    assert len(page.context["page"].rows) == 5
    assert [one.job.name for one in found.context["page"]] == ["cells_3"]
    assert as_alice.get("/training/?q=nothing").content.count(b"No training job matches") == 1


def test_training_list_when_empty_names_the_next_step(as_alice):
    assert (
        "No training jobs yet. Choose a dataset and a preset; all other" in as_alice.get("/training/").content.decode()
    )


def test_B04_training_list_filters_by_nothing_else(api, machine):
    answer = api.get("/api/v1/training/jobs/?owner__password__startswith=pbkdf2")

    assert answer.status_code == 400


def test_training_outputs_come_in_parts_and_as_a_zip(as_alice, trained):
    url = f"/training/{trained.pk}/files/1"
    part = as_alice.get(f"{url}/content/?path=model/model.onnx", headers={"range": "bytes=10-19"})
    whole = zipfile.ZipFile(io.BytesIO(b"".join(as_alice.get(f"{url}/zip/"))))

    assert (part.status_code, b"".join(part)) == (206, bytes(range(10, 20)))
    assert sorted(whole.namelist()) == ["metrics.json", "model/model.onnx"]


@pytest.mark.parametrize("path", ["../params.json", "/etc/passwd", "..", "", "out", "fifo", "model"])
def test_training_outputs_let_no_path_lead_out(as_alice, trained, path):
    import os

    run = factory.move(trained, "succeeded")
    (run.outputs / "out").symlink_to("/etc/passwd")
    os.mkfifo(run.outputs / "fifo")

    answer = as_alice.get(f"/training/{trained.pk}/files/1/content/", {"path": path})

    assert answer.status_code == 404


def test_training_outputs_take_no_path_that_no_file_can_have(as_alice, trained):
    factory.move(trained, "succeeded")

    assert as_alice.get(f"/training/{trained.pk}/files/1/content/", {"path": "a\0b"}).status_code == 400


def test_training_checkpoints_list_only_whole_ones(api, trained):
    run = factory.move(trained, "succeeded")
    factory.checkpoint(run, 300, whole=False)
    (run.checkpoints / "step-000400").mkdir()
    (run.checkpoints / "step-000500.tmp").mkdir()
    (run.checkpoints / "step-000600").symlink_to("/etc")
    (run.checkpoints / "best").symlink_to("step-000100")
    (run.checkpoints / "step-000700").mkdir()
    (run.checkpoints / "step-000700" / "meta.json").write_text("[" * 100_000)

    rows = api.get(f"/api/v1/training/jobs/{trained.pk}/checkpoints/").json()

    assert [(row["name"], row["best"]) for row in rows] == [("1/step-000200", False), ("1/step-000100", True)]


def test_training_restore_remembers_everything_but_what_was_changed(api, trained):
    answer = api.post(
        f"/api/v1/training/jobs/{trained.pk}/restore/",
        {"checkpoint": "1/step-000100", "params": {"lr": 0.001}},
        format="json",
    )

    trained.refresh_from_db()
    job = Job.objects.get(pk=trained.job_id)
    assert answer.status_code == 202
    assert trained.params["lr"] == 0.001
    assert job.spec["params"]["lr"] == 0.001
    assert job.resume_from.endswith("/1/checkpoints/step-000100")


def test_training_restore_works_by_the_page(as_alice, trained):
    url = f"/training/{trained.pk}/restore/"
    page = as_alice.get(url)
    filled = {field.html_name: field.value() for field in page.context["form"] if field.value() not in (None, False)}
    filled = {**filled, "gpus_per_node": 0}

    answer = as_alice.post(url, filled)

    assert (answer.status_code, answer.url) == (302, f"/training/{trained.pk}/")
    assert Job.objects.get(pk=trained.job_id).resume_from.endswith("step-000200")


def test_training_restore_is_refused_without_a_checkpoint(api, as_alice, alice, machine, cells):
    training = factory.training(alice, data=cells)
    factory.move(training, "failed")

    answer = api.post(f"/api/v1/training/jobs/{training.pk}/restore/", {}, format="json")

    assert (answer.status_code, answer.json()["code"]) == (409, "no_checkpoint")
    assert "has no checkpoint" in as_alice.get(f"/training/{training.pk}/restore/").content.decode()


def test_training_restore_is_refused_without_its_data(alice, trained, cells):
    cells.delete()
    trained.refresh_from_db()

    with pytest.raises(data_use.NotRestorable, match="cells v1 was deleted"):
        jobs.restore(trained, by=alice)


def test_checkpoints_valid_finds_all_attempts_newest_first(trained):
    factory.checkpoint(factory.move(trained, "failed", attempt=2), 250)

    assert [row.name for row in checkpoints.valid(trained)] == ["2/step-000250", "1/step-000200", "1/step-000100"]


def test_preset_catalogue_is_listed_and_searched(as_alice, api):
    page = as_alice.get("/training/presets/?q=objct")
    answer = api.get("/api/v1/training/presets/")

    assert [row["preset"].name for row in page.context["rows"]] == ["detect", "hog_detect"]
    rate = next(param for param in answer.json()[0]["parameters"] if param["name"] == "lr")
    assert (rate["kind"], rate["minimum"], rate["maximum"]) == ("float", 1e-7, 10)


def test_parameter_set_is_saved_used_and_removed(as_alice, api, machine, cells):
    page = as_alice.get("/training/params/new/?preset=detect")
    filled = {field.html_name: field.value() for field in page.context["form"] if field.value() is not None}
    as_alice.post("/training/params/new/?preset=detect", filled | {"name": "small", "detect__lr": "0.005"})

    saved = ParameterSet.objects.get()
    made = api.post(
        "/api/v1/training/jobs/", {"name": "a", "version": cells.pk, "parameter_set": saved.pk}, format="json"
    )
    form = as_alice.get(f"/training/new/?set={saved.pk}").context["form"]

    assert saved.params == {"lr": 0.005}
    assert made.json()["params"]["lr"] == 0.005
    assert form["detect__lr"].value() == 0.005
    as_alice.post(f"/training/params/{saved.pk}/delete/")
    assert not ParameterSet.objects.exists()


def test_parameter_sets_are_private_and_their_names_single(api, bob, alice):
    body = {"name": "small", "preset": "detect", "params": {"lr": 0.005}}
    first = api.post("/api/v1/training/params/", body, format="json")
    twice = api.post("/api/v1/training/params/", body, format="json")
    wrong = api.post("/api/v1/training/params/", body | {"name": "b", "params": {"lr": 99}}, format="json")
    api.force_authenticate(bob)

    assert (first.status_code, twice.json()["code"], wrong.json()["code"]) == (201, "name_taken", "bad_parameter")
    assert api.get("/api/v1/training/params/").json()["results"] == []
    assert api.delete(f"/api/v1/training/params/{first.json()['id']}/").status_code == 404


def test_resource_panel_names_machines_only_to_those_who_may_see_them(alice, machine, cells):
    blind = Role.objects.create(name="blind", actions=[one for one in AI_PLATFORM if one != Action.CLUSTER_VIEW])
    alice.roles.set([blind])
    asked = {"gpus_per_node": 0, "cpus": 1, "nodes": 1, "preset": "detect"}

    assert signed_in(alice).post("/training/fit/", asked).context["verdict"].sentence == "Can start now."


def test_resource_panel_says_whether_it_fits(as_alice, machine, cells):
    def panel(**more):
        asked = {"gpus_per_node": 0, "cpus": 1, "nodes": 1, "preset": "detect"} | more
        return as_alice.post("/training/fit/", asked).context["verdict"]

    assert (panel().kind, panel().sentence) == ("now", "Can start now on node1.")
    assert panel(gpus_per_node=2).kind == "never"
    assert panel(cpus="").kind == "unknown"
    without_nodes = panel(nodes="")
    assert (without_nodes.kind, "Nodes: " in without_nodes.sentence) == ("unknown", True)
    assert panel(memory_gib="-1").kind == panel(max_runtime_min="x").kind == "unknown"


def test_training_api_dry_run_answers_the_same(api, machine, cells):
    answer = api.post("/api/v1/training/jobs/preview/", {"name": "a", "version": cells.pk}, format="json")

    assert (answer.status_code, answer.json()["kind"]) == (200, "now")
    assert not TrainingJob.objects.exists()


def test_training_keeps_its_dataset_from_being_deleted(alice, machine, cells):
    from datasets.services import usage

    training = factory.training(alice, data=cells)

    assert usage.users_of(cells) == ["training job cells of Alice"]
    factory.move(training, "succeeded")
    assert usage.users_of(cells) == []


def test_training_api_gives_the_log_and_the_curves(api, trained):
    run = factory.move(trained, "succeeded")
    run.log.write_text("step 1\nstep 2\n")

    piece = api.get(f"/api/v1/training/jobs/{trained.pk}/log/?offset=7").json()
    curves = api.get(f"/api/v1/training/jobs/{trained.pk}/metrics/").json()

    assert (piece["text"], piece["next_offset"], piece["ended"]) == ("step 2\n", 14, True)
    assert json.dumps(curves["newest"]) == "{}"


def test_search_finds_ones_own_trainings(alice, bob, trained):
    from aiplatform.lib.search import search

    hits = [hit for hit in search(alice, "cel") if hit["url"] == f"/training/{trained.pk}/"]

    assert [hit["name"] for hit in hits] == ["cells"]
    assert search(bob, "cel") == []


def test_training_page_leads_to_its_model(client, alice):
    from training.runs import publishers

    training = factory.training(alice)
    factory.move(training, "running")
    TrainingJob.objects.filter(pk=training.pk).update(published_attempt=1)
    client.force_login(alice)

    with publishers.RESULTS.temporarily(lambda asked: publishers.Result(f"/models/{asked.pk}/?version=1"), alone=True):
        page = client.get(f"/training/{training.pk}/").content.decode()

    assert f'href="/models/{training.pk}/?version=1"' in page


def test_e04_training_checkpoints_page_is_not_held_up_by_a_pipe(as_alice, trained):
    folder = checkpoints.valid(trained)[0].folder.with_name("step-000300")
    folder.mkdir()
    os.mkfifo(folder / "meta.json")

    assert as_alice.get(f"/training/{trained.pk}/files/").status_code == 200
    assert [row.step for row in checkpoints.valid(trained)] == [200, 100]


def test_b08_job_api_restores_no_training_on_data_made_private(api, trained, bob, machine):
    TrainingJob.objects.update(writes_checkpoints=True)
    trained.version.dataset.__class__.objects.filter(pk=trained.version.dataset_id).update(owner=bob)

    answer = api.post(f"/api/v1/jobs/{trained.job_id}/restore/")

    assert answer.json()["code"] == "version_not_ready"
    assert Job.objects.get(pk=trained.job_id).state == "succeeded"


def test_d07_training_outputs_list_and_send_a_file_name_that_is_no_text(as_alice, api, trained):
    outputs = checkpoints.valid(trained)[0].folder.parents[1] / "outputs"
    with open(os.fsencode(outputs) + b"/caf\xe9.txt", "wb") as file:
        file.write(b"found")

    assert "caf?.txt" in as_alice.get(f"/training/{trained.pk}/files/").content.decode()
    assert api.get(f"/api/v1/training/jobs/{trained.pk}/files/").status_code == 200
    answer = api.get(f"/api/v1/training/jobs/{trained.pk}/files/content/?path=caf%3F.txt")
    assert b"".join(answer) == b"found"
    zipped = b"".join(api.get(f"/api/v1/training/jobs/{trained.pk}/files/zip/"))
    assert "caf?.txt" in zipfile.ZipFile(io.BytesIO(zipped)).namelist()


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", ["AP on validation", "AP50 on validation: cell", "Validation loss"]),
        ("zh-hans", ["验证集 AP", "验证集 AP50: cell", "验证损失"]),
    ],
)
def test_training_page_calls_figures_by_their_words_and_own_ones_as_their_code_does(
    as_alice, alice, trained, language, words
):
    type(alice).objects.filter(pk=alice.pk).update(language=language)
    metrics = {"val/ap": 0.5, "val/ap50/cell": 0.25, "val/loss": 0.1, "own_figure": 12345}
    TrainingJob.objects.filter(pk=trained.pk).update(metrics=metrics)

    html = as_alice.get(f"/training/{trained.pk}/").content.decode()

    for word in (*words, "own_figure", "12,345"):
        assert f">{word}<" in html, word
    assert ">val/" not in html

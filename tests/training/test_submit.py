"""Submitting: one service, two faces, and what it refuses."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils.timezone import now

from accounts.models import IdempotencyRecord
from tests.conftest import signed_in
from tests.factories import datasets, people, work
from tests.factories import training as factory
from training.presets.catalog import PRESETS
from training.programs import data_checks
from training.runs import jobs
from training.runs.drafts import TrainingRequest
from training.runs.extra_options import BadSwitch
from training.runs.models import TrainingJob
from workers.core.models import Job, Membership, VirtualCluster
from workers.jobs import resource_request

pytestmark = pytest.mark.postgres

API = "/api/v1/training/jobs/"
PAGE = "/training/new/"


def form(version, **more):
    """The shortest form: name, data, start; the rest as the page fills it."""
    fields = {"name": "cells", "version": version.pk, "preset": "detect", "gpus_per_node": 0, "cpus": 1, "nodes": 1}
    return fields | {"processes": 0, "priority": 0} | more


def test_training_submit_needs_only_name_and_data(api, machine, cells):
    answer = api.post(API, {"name": "cells", "version": cells.pk}, format="json")

    training = TrainingJob.objects.get(pk=answer.json()["id"])
    assert answer.status_code == 201
    assert (training.preset, training.job.gpus_per_node, training.job.cpus) == ("detect", 0, 4.0)
    assert training.job.cluster.name == "default"
    assert training.params["lr"] == next(p.default for p in PRESETS["detect"].parameters if p.name == "lr")


def test_training_submit_chooses_the_preset_by_the_labels(api, machine, alice):
    labelled = factory.version(alice, "digits", task="classification")

    answer = api.post(API, {"name": "digits", "version": labelled.pk}, format="json")

    assert answer.json()["preset"] == "classify"


def test_training_submit_takes_a_card_where_there_is_one(api, db, cells):
    work.node(gpus=2)

    answer = api.post(API, {"name": "cells", "version": cells.pk}, format="json")

    assert answer.json()["gpus_per_node"] == 1


def test_training_form_submits_the_same_as_the_api(as_alice, machine, cells):
    answer = as_alice.post(PAGE, form(cells, detect__lr="0.01", detect__flip="0"))

    training = TrainingJob.objects.get()
    assert answer.url == f"/training/{training.pk}/"
    assert (training.params["lr"], training.params["flip"]) == (0.01, 0.0)
    assert training.job.spec["dataset"]["manifest_sha256"] == cells.manifest_sha256


def test_training_form_defaults_are_all_accepted(as_alice, machine, cells):
    page = as_alice.get(PAGE)
    filled = {
        field.html_name: field.value()
        for field in page.context["form"]
        if field.value() is not None and field.value() is not False
    }

    answer = as_alice.post(PAGE, {**filled, "name": "cells", "version": cells.pk})

    assert answer.status_code == 302, answer.context["form"].errors


REFUSALS = [
    ({"name": "two/words"}, "name", "invalid"),
    ({"gpus_per_node": 9}, "gpus_per_node", None),
    ({"priority": -1}, "priority", None),
    ({"extra": "-sudo"}, "extra", "bad_switch"),
    ({"extra": "-gpu:7"}, "extra", "bad_switch"),
]


@pytest.mark.parametrize(("wrong", "field", "code"), REFUSALS)
def test_training_form_and_api_refuse_alike(as_alice, api, machine, cells, wrong, field, code):
    page = as_alice.post(PAGE, form(cells, **wrong))
    sent = {"name": "cells", "version": cells.pk, "preset": "detect", "gpus_per_node": 0} | wrong
    answer = api.post(API, sent, format="json")

    assert page.status_code == 422
    assert field in page.context["form"].errors
    assert answer.status_code in (400, 409)
    assert field in answer.json()["errors"]
    if code:
        assert answer.json()["code"] == code
    assert TrainingJob.objects.count() == 0
    assert Job.objects.count() == 0


def test_training_submit_names_a_parameter_out_of_bounds_with_its_bounds(as_alice, api, machine, cells):
    page = as_alice.post(PAGE, form(cells, detect__lr="50"))
    answer = api.post(API, {"name": "cells", "version": cells.pk, "params": {"lr": 50}}, format="json")

    said = "lr must be a number from 1e-07 to 10."
    assert page.context["form"].errors["detect__lr"] == [said]
    assert (answer.json()["code"], answer.json()["errors"]) == ("bad_parameter", {"param_lr": [said]})


@pytest.mark.parametrize("wrong", [{"lr": "fast"}, {"epochs": True}, {"architecture": "vgg"}, {"nonsense": 1}])
def test_training_submit_checks_types_and_names_of_parameters(api, machine, cells, wrong):
    answer = api.post(API, {"name": "cells", "version": cells.pk, "params": wrong}, format="json")

    assert answer.json()["code"] == "bad_parameter"


def test_training_submit_refuses_NaN(api, machine, cells):
    body = f'{{"name": "cells", "version": {cells.pk}, "params": {{"lr": NaN}}}}'

    answer = api.post(API, body, content_type="application/json")

    assert answer.status_code == 400


def test_training_submit_refuses_an_unannotated_version(api, machine, alice):
    plain = factory.version(alice, "plain", task="none")

    answer = api.post(API, {"name": "cells", "version": plain.pk, "preset": "detect"}, format="json")

    assert (answer.status_code, answer.json()["code"]) == (409, "version_not_ready")
    assert "not annotated" in answer.json()["detail"]


def test_training_submit_refuses_labels_that_do_not_suit_the_preset(api, machine, alice):
    labelled = factory.version(alice, "digits", task="classification")

    answer = api.post(API, {"name": "cells", "version": labelled.pk, "preset": "detect"}, format="json")

    assert answer.json()["code"] == "wrong_task"
    assert "needs boxes" in answer.json()["detail"]


def test_L04_training_submit_refuses_a_dataset_being_deleted(alice, machine, cells):
    cells.dataset.deleting = True
    cells.dataset.save()

    with pytest.raises(data_checks.VersionNotReady, match="can no longer access"):
        jobs.submit(user=alice, request=TrainingRequest(name="cells", version=cells))


def test_training_submit_refuses_a_cluster_one_does_not_belong_to(alice, machine, cells):
    other = VirtualCluster.objects.create(name="other")

    with pytest.raises(resource_request.NotAMember, match="not a member of other"):
        jobs.submit(user=alice, request=TrainingRequest(name="cells", version=cells, cluster=other))


def test_training_submit_tells_who_has_no_cluster_whom_to_ask(alice, machine, cells):
    Membership.objects.all().delete()

    with pytest.raises(resource_request.NotAMember, match="Ask an administrator"):
        jobs.submit(user=alice, request=TrainingRequest(name="cells", version=cells))


def test_C02_training_submit_lets_nobody_set_what_the_platform_decides(api, machine, cells):
    for name, value in {
        "owner": 1, "state": "succeeded", "exit_code": 0, "gpu_ids": [0], "node": 1, "uid": 0, "privileged": True,
        "log_path": "/etc/passwd", "metrics": {}, "desired": "run", "spec": {},
    }.items():  # fmt: skip
        answer = api.post(API, {"name": "cells", "version": cells.pk, name: value}, format="json")

        assert answer.status_code == 400, name
        assert name in answer.json()["errors"]
    assert TrainingJob.objects.count() == 0


def test_C02_training_submit_keeps_the_urgent_tier_for_operators(api, machine, cells, olga):
    answer = api.post(API, {"name": "cells", "version": cells.pk, "priority": 100}, format="json")

    urgent = jobs.submit(user=olga, request=TrainingRequest(name="urgent", version=cells, priority=100))
    assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")
    assert urgent.job.priority == 100


def test_B03_training_submit_hides_strangers_things(api, machine, cells, bob, tmp_path):
    theirs = factory.version(bob, "secret")
    trained = factory.training(bob, data=theirs)
    snapshot = factory.code(bob, tmp_path / "bobs")
    saved = bob.parameter_sets.create(name="mine", preset="detect")
    cluster = VirtualCluster.objects.create(name="other")
    references = {
        "version": theirs.pk, "eval_version": theirs.pk, "parent": trained.pk, "code": snapshot.pk,
        "cluster": cluster.pk, "parameter_set": saved.pk,
    }  # fmt: skip
    for field, stranger in references.items():
        missing = "f" * 32 if field == "code" else 987_654
        answers = [
            api.post(API, {"name": "cells", "version": cells.pk, field: value}, format="json")
            for value in (stranger, missing)
        ]

        bodies = [answer.json()["errors"][field][0].replace(str(value), "N") for answer, value in
                  zip(answers, (stranger, missing), strict=True)]  # fmt: skip
        assert [answer.status_code for answer in answers] == [400, 400]
        assert bodies[0] == bodies[1]


def test_B08_training_submit_takes_a_public_dataset_for_everybody(bob, machine, alice):
    shared = datasets.version(datasets.dataset(alice, "shared", visibility="public"))

    assert jobs.submit(user=bob, request=TrainingRequest(name="mine", version=shared)).version == shared


def test_J04_training_submit_gives_the_same_training_for_the_same_key(api, machine, cells):
    body = {"name": "cells", "version": cells.pk}
    first = api.post(API, body, format="json", headers={"Idempotency-Key": "one-intention"})
    again = api.post(API, body, format="json", headers={"Idempotency-Key": "one-intention"})
    other = api.post(API, body | {"name": "else"}, format="json", headers={"Idempotency-Key": "one-intention"})

    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json()["id"] == again.json()["id"]
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert TrainingJob.objects.count() == 1


def test_training_submit_lets_a_refused_request_be_corrected_with_its_key(api, machine, cells):
    headers = {"Idempotency-Key": "one-intention"}
    wrong = api.post(API, {"name": "two/words", "version": cells.pk}, format="json", headers=headers)
    right = api.post(API, {"name": "cells", "version": cells.pk}, format="json", headers=headers)

    assert (wrong.status_code, right.status_code) == (400, 201)


def test_idempotency_record_refuses_a_key_in_work_and_takes_over_dead_ones(api, machine, cells):
    body, headers = {"name": "cells", "version": cells.pk}, {"Idempotency-Key": "one-intention"}
    api.post(API, body, format="json", headers=headers)
    TrainingJob.objects.all().delete()
    IdempotencyRecord.objects.update(status=0, body=None, holder="another", renewed_at=now() - timedelta(seconds=20))

    early = api.post(API, body, format="json", headers=headers)
    IdempotencyRecord.objects.update(renewed_at=now() - timedelta(seconds=31))
    late = api.post(API, body, format="json", headers=headers)

    assert (early.status_code, early.json()["code"]) == (409, "idempotency_in_progress")
    assert (late.status_code, TrainingJob.objects.count(), IdempotencyRecord.objects.get().status) == (201, 1, 201)


def archive(**files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for name, text in files.items():
            packed.writestr(f"mine/{name}.py", text)
    out.seek(0)
    out.name = "mine.zip"
    return out


def test_training_form_takes_own_code_as_an_archive(as_alice, machine, cells):
    sent = form(cells, preset="own", start_file="train.py", arguments="--data {data}", pairs="lr = 0.1\nname = a b")

    answer = as_alice.post(PAGE, sent | {"code_archive": archive(train="print(1)", helper="x = 1")})

    training = TrainingJob.objects.get()
    assert answer.status_code == 302
    assert (training.code.files, training.code.origin, training.start_file) == (2, "mine.zip", "train.py")
    assert (training.code.path / "train.py").read_text() == "print(1)"
    assert training.params == {"lr": 0.1, "name": "a b"}


def test_training_api_takes_own_code(api, machine, cells):
    sent = {"name": "own", "version": cells.pk, "start_file": "train.py", "code_archive": archive(train="print(1)")}

    answer = api.post(API, sent, format="multipart")

    assert answer.status_code == 201, answer.json()
    assert answer.json()["preset"] == ""


def test_training_form_refuses_a_dangerous_archive_and_keeps_nothing(as_alice, machine, cells, settings):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        packed.writestr("../escaped.py", "x")
    out.seek(0)
    out.name = "evil.zip"

    answer = as_alice.post(PAGE, form(cells, preset="own", start_file="escaped.py") | {"code_archive": out})

    assert answer.status_code == 422
    assert TrainingJob.objects.count() == 0
    assert not list((settings.DATA_ROOT / "code").iterdir())


@pytest.mark.parametrize("start", ["-c", "--help", "../x.py", "/etc/x.py", "sub", "link.py", "train.txt", "nope.py",
                                   "-x.py", "train.py\n", ""])  # fmt: skip
def test_F02_training_submit_wants_a_python_file_inside_the_code_to_start(api, machine, cells, code, start):
    (code.path / "sub").mkdir(exist_ok=True)
    (code.path / "train.txt").write_text("x")
    (code.path / "link.py").symlink_to("/etc/passwd")

    answer = api.post(API, {"name": "own", "version": cells.pk, "code": code.pk, "start_file": start}, format="json")

    if start == "train.py\n":  # a trailing newline is no part of a name
        assert answer.status_code == 201
    else:
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_start_file")


def test_training_submit_copies_a_folder_of_the_home_and_no_way_out(alice, bob, api, machine, cells, tmp_path):
    factory.code(bob, tmp_path / "secret")
    sent = {"name": "own", "version": cells.pk, "start_file": "train.py"}

    for path in ("../bob/secret", "/etc", "..", "nothing"):
        answer = api.post(API, sent | {"home_path": path}, format="json")

        assert (answer.status_code, answer.json()["code"]) == (400, "bad_code"), path


def test_training_run_parameters_are_words_not_a_shell(api, machine, cells, code):
    sent = {"name": "own", "version": cells.pk, "code": code.pk, "start_file": "train.py"}

    open_quote = api.post(API, sent | {"arguments": 'a "b'}, format="json")
    unknown = api.post(API, sent | {"arguments": "{home}"}, format="json")
    outside = api.post(API, sent | {"output_path": "../out"}, format="json")

    assert "arguments" in open_quote.json()["errors"]
    assert "{data}" in unknown.json()["detail"]
    assert "output_path" in outside.json()["errors"]


def test_training_clone_begins_with_everything_remembered(as_alice, alice, machine, cells):
    parent = factory.training(alice, data=cells, name="cells", params={"lr": 0.01}, priority=5, extra="-keep:7")

    page = as_alice.get(f"{PAGE}?clone={parent.pk}")

    filled = page.context["form"]
    assert filled["name"].value() == "cells_2"
    assert filled["detect__lr"].value() == 0.01
    assert (filled["priority"].value(), filled["extra"].value(), filled["version"].value()) == (5, "-keep:7", cells.pk)


def test_training_clone_or_set_of_a_stranger_is_404(as_bob, alice, machine, cells):
    parent = factory.training(alice, data=cells)
    saved = alice.parameter_sets.create(name="mine", preset="detect")

    assert as_bob.get(f"{PAGE}?clone={parent.pk}").status_code == 404
    assert as_bob.get(f"{PAGE}?set={saved.pk}").status_code == 404


def test_training_form_is_closed_to_annotators_and_strangers(as_anna, client, machine):
    assert as_anna.get(PAGE).status_code == 403
    assert as_anna.get("/training/").status_code == 403
    assert client.get(PAGE).url.startswith("/login/")


def test_training_form_shows_the_next_step_without_datasets(machine, cluster):
    newcomer = signed_in(people.user("carol", cluster=cluster))

    page = newcomer.get(PAGE)

    assert "no annotated dataset yet" in page.content.decode()


def test_training_submit_takes_a_second_dataset_for_own_code_only(api, machine, alice, cells, code):
    other = factory.version(alice, "others")
    body = {"name": "own", "version": cells.pk, "eval_version": other.pk}

    preset = api.post(API, body, format="json")
    own = api.post(API, body | {"code": code.pk, "start_file": "train.py"}, format="json")

    assert "eval_version" in preset.json()["errors"]
    assert own.json()["eval_version"] == other.pk


def test_training_admin_site_shows_trainings_and_changes_none(as_olga, alice, machine, cells):
    training = factory.training(alice, data=cells)

    assert as_olga.get("/admin/training/trainingjob/").status_code == 200
    assert as_olga.get(f"/admin/training/trainingjob/{training.pk}/change/").status_code == 200
    assert as_olga.post(f"/admin/training/trainingjob/{training.pk}/delete/").status_code == 403


def test_training_submit_refuses_a_switch_the_preset_would_ignore(alice, machine, cells, code, monkeypatch):
    known = tuple(param for param in PRESETS["detect"].parameters if param.name != "no_steps")
    monkeypatch.setitem(PRESETS, "detect", replace(PRESETS["detect"], parameters=known))

    with pytest.raises(BadSwitch, match=r"detect does not support -NoStep."):
        jobs.submit(user=alice, request=TrainingRequest(name="cells", version=cells, extra="-NoStep"))
    request = TrainingRequest(name="own", version=cells, code=code, start_file="train.py", extra="-NoStep")
    own = jobs.submit(user=alice, request=request)
    assert own.extra == {"no_step": True}

import json
from datetime import timedelta

import pytest
from django.utils.timezone import now

from accounts.models import AuditEntry, Delivery, NoticeChoices
from aiplatform.lib.errors import Invalid
from datasets.models import Import
from inference.batch.models import PredictedData, Prediction
from inference.conversion.models import Conversion
from inference.delivery.edge import fleet
from inference.delivery.edge.models import EdgeDevice, EdgeGroup
from inference.delivery.push.models import Push, PushTarget
from inference.pipelines import loop, runs, writing
from inference.pipelines.models import StepRun
from inference.pipelines.steps import long_running
from inference.pipelines.steps import serving as serve
from inference.registry.models import ModelVersion
from inference.serving import endpoints as serving
from inference.serving.models import Service, ServiceTrial, ServiceUsage
from inference.serving.traffic import statistics
from inference.tasks import sweep
from tests.factories import models as factory
from tests.factories import work
from tests.inference import judged
from tests.inference.running import set_state
from tests.pipelines.made import begun, end, pipeline, step
from tests.pipelines.shipping import poll, shipped
from workers.access.proxy import endpoints

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("machine")]


@pytest.fixture
def model(alice, tmp_path):
    return factory.model_version(alice, tmp_path)


@pytest.fixture
def newer(alice, tmp_path, model):
    return factory.model_version(alice, tmp_path, name="newer", model=model.model)


@pytest.fixture
def data(alice, tmp_path):
    return judged.dataset_version(alice, tmp_path / "data", manifest_sha256="a" * 64)


@pytest.fixture
def answering(monkeypatch):
    """Every server that runs answers."""
    monkeypatch.setattr(endpoints, "endpoint", lambda job: ("127.0.0.1", 7))
    monkeypatch.setattr(serving, "is_ready", lambda address, key: True)


def test_register_moves_alias_and_stage_and_the_history_says_which_run_and_figures(alice, bob, model, data):
    how = {"kind": "register", "with": {"alias": "champion", "stage": "approved"}}
    run = shipped(alice, model, data, **how, **{"from": {"model": "train.model", "figures": ["train.figures"]}})

    assert run.state == "ok"
    assert step(run, "it").outputs["model"]["id"] == model.pk
    model.refresh_from_db()
    assert (model.stage, model.stage_reason) == ("approved", f"{run} · AP50 = 0.91")
    assert model.aliases.get().name == "champion"
    assert AuditEntry.objects.get(verb="model_alias_moved").facts["value"] == "AP50 = 0.91"

    type(model.model).objects.filter(pk=model.model_id).update(owner=bob, visibility="public")
    refused = shipped(alice, model, data, kind="register", **{"with": {"alias": "production"}})
    assert str(step(refused, "it").message) == "You cannot edit cells. Ask its owner to share it with manage access."


def test_convert_goes_on_with_the_fastest_and_fails_with_what_variants_lost_where_none_is_accepted(
    alice, model, newer, data
):
    convert = {"kind": "convert", "with": {"split": "test", "keep": "all", "targets": "fp16 int8"},
               "from": {"model": "train.model", "data": "cells.data"}}  # fmt: skip
    run = shipped(alice, model, data, **convert)
    conversion = Conversion.objects.get()
    assert conversion.params["targets"] == ["fp16", "int8"]
    for target, p50, made in (("fp16", 9.0, model), ("int8", 4.0, newer)):
        figures = {"p50_ms": p50, "loss": 0.004, "size_bytes": 100}
        conversion.variants.create(target=target, state="accepted", figures=figures, made=made)
    end(conversion.job)
    loop.advance_run(run.pk)

    row = step(run, "it")
    assert (row.state, row.outputs["model"]["id"]) == ("ok", newer.pk)
    assert row.outputs["figures"]["values"]["p50_ms"] == 4.0
    assert row.outputs["figures"]["values"]["fp16.p50_ms"] == 9.0
    again = shipped(alice, model, data, run.pipeline)
    assert (step(again, "it").state, step(again, "it").outputs["model"]["id"]) == ("cached", newer.pk)

    ModelVersion.objects.filter(pk=model.pk).update(dataset_version=data)  # what it was trained on is taken
    run = shipped(alice, model, data, kind="convert", **{"with": {"split": "test"}})
    conversion = Conversion.objects.order_by("-pk").first()
    conversion.variants.create(target="int8", state="refused", figures={"loss": 0.25})
    end(conversion.job)
    loop.advance_run(run.pk)

    assert (conversion.data, step(run, "it").state) == (data, "failed")
    assert "(int8: -0.25)" in str(step(run, "it").message)


def test_serve_makes_a_service_and_changes_it_at_once(alice, model, newer, data, answering):
    run = shipped(alice, model, data, kind="serve", **{"with": {"service": "demo", "cpus": 2}})
    service = Service.objects.get()
    assert (service.options["cpus"], poll(run, aside=True).state) == (2, "started")

    set_state(service.job, "running")
    assert poll(run, aside=True).state == "ok"
    assert step(run, "it").outputs["service"] == {"type": "service", "id": service.pk, "label": "demo"}

    run = shipped(alice, newer, data, kind="serve", **{"with": {"service": "demo"}})
    service.refresh_from_db()
    assert (service.next_version, poll(run).state) == (newer, "started")
    set_state(service.next_job, "failed")
    poll(run)
    row = poll(run)
    service.refresh_from_db()
    assert (row.state, row.message.code) == ("failed", "pipeline.server_ended_beside")
    assert (service.model_version, service.next_job) == (model, None)

    run = shipped(alice, newer, data, kind="serve", **{"with": {"service": "demo"}})
    service.refresh_from_db()
    set_state(service.next_job, "running")
    assert poll(run, aside=True).state == "ok"
    service.refresh_from_db()
    assert (service.model_version, service.next_job) == (newer, None)


@pytest.fixture
def tried(alice, model, newer, data, answering):
    """A run that tries a version on a part of the requests of a service; it answers."""
    service = serving.create(user=alice, name="demo", model_version=model)
    set_state(service.job, "running")
    how = {"service": "demo", "mode": "canary", "percent": 20, "minutes": 30, "requests": 50}
    run = shipped(alice, newer, data, kind="serve", **{"with": how})
    trial = ServiceTrial.objects.get()
    assert (trial.mode, trial.percent, trial.version) == ("canary", 20, newer)
    set_state(trial.job, "running")
    assert poll(run, aside=True).state == "started"
    return run


def record_requests(requests: int, failed: int) -> None:
    """Record requests that the trial answered."""
    trial = ServiceTrial.objects.get()
    ServiceUsage.objects.create(
        slot="tried", service=trial.service, trial=trial, candidate=True, begins_at=now(), requests=requests,
        failed=failed,
    )  # fmt: skip


def later(run, minutes: int) -> StepRun:
    """Let it be watched for so long."""
    row = step(run, "it")
    long_running.store(row, since=(now() - timedelta(minutes=minutes)).isoformat())
    return poll(run)


def test_serve_promotes_what_was_watched_long_enough_and_not_worse(tried, newer):
    record_requests(40, 0)
    assert later(tried, 31).state == "started"  # too few requests

    ServiceUsage.objects.update(requests=60, failed=1)
    assert later(tried, 29).state == "started"
    row = later(tried, 31)

    service = Service.objects.get()
    assert (row.state, str(row.message)) == ("ok", "demo serves cells v2.")
    assert (service.model_version, ServiceTrial.objects.get().outcome) == (newer, "promoted")
    assert row.outputs["figures"]["values"] == {"requests": 60, "failed": 1, "beside_requests": 0, "beside_failed": 0}


def test_serve_rolls_back_when_errors_rise_and_the_step_says_why(tried, model):
    record_requests(60, 30)
    poll(tried)
    row = poll(tried)

    assert (row.state, ServiceTrial.objects.get().outcome) == ("failed", "rolled_back")
    assert str(row.message) == "Rolled back: 30 of 60 requests failed, more than 5 %."
    assert Service.objects.get().model_version == model


def test_cancelled_run_rolls_its_trial_back_and_a_halted_one_fails(tried, alice, newer, data):
    runs.cancel(tried)
    loop.advance_run(tried.pk)
    tried.refresh_from_db()
    trial = ServiceTrial.objects.get()
    assert (tried.state, trial.outcome) == ("cancelled", "rolled_back")

    run = shipped(alice, newer, data, kind="serve", **{"with": {"service": "demo", "mode": "ab"}})
    set_state(ServiceTrial.objects.get(outcome="").job, "failed")
    sweep()
    row = poll(run)
    assert (row.state, row.message.code) == ("failed", "pipeline.trial_halted")
    assert str(row.message).startswith("The rollout of demo was halted: ")


@pytest.mark.parametrize(
    ("failed", "requests", "agreement", "over", "code"),
    [
        (1, 10, None, False, ""),  # a tenth, but not surely more than 5 %
        (1, 10, None, True, "pipeline.trial_fails"),
        (0, 0, None, True, "pipeline.trial_differs"),  # what nobody compared does not agree
        (0, 10, 0.89, True, "pipeline.trial_differs"),
        (0, 10, 0.91, True, ""),
    ],
)
def test_trial_is_judged_by_what_is_sure_and_at_its_end_by_what_was_counted(failed, requests, agreement, over, code):
    count = int(agreement is not None)
    usage = ServiceUsage(requests=requests, failed=failed, compared=count, agreement=agreement or 0)
    rule = {"most_failed": 5, "least_agreement": 90}

    assert serve.against(statistics.summarize([usage]), rule, over=over).code == code


def test_edge_is_over_when_devices_run_it_and_fails_when_the_release_is_halted(alice, model, newer, data):
    group = fleet.create(user=alice, name="Gates")
    for number in range(3):
        fleet.add_device(group=group, name=f"gate-{number}", by=alice)
    EdgeDevice.objects.update(token_digest="x")

    def report(outcome: str, package: str = "") -> None:
        for device in EdgeDevice.objects.select_related("group__wanted", "group__before"):
            fleet.report(device, {"outcome": outcome, "package": package})

    run = shipped(alice, model, data, kind="edge", **{"with": {"group": "Gates", "share": "100"}})
    assert poll(run).state == "started"
    assert EdgeGroup.objects.get().wanted is None  # its package is not made by the loop
    assert poll(run, aside=True).state == "started"
    report("updated", EdgeGroup.objects.get().wanted.sha256)
    assert poll(run).outputs["figures"]["values"] == {"devices": 3, "running": 3, "failed": 0}
    assert step(run, "it").state == "ok"

    again = shipped(alice, model, data, kind="edge", **{"with": {"group": "Gates", "share": "10"}})
    poll(again, aside=True)
    assert (poll(again).state, EdgeGroup.objects.get().share) == ("ok", 100)  # no device is taken the model from

    run = shipped(alice, newer, data, kind="edge", **{"with": {"group": "Gates", "share": "100"}})
    poll(run, aside=True)
    report("failed_self_test")
    row = poll(run)
    assert str(row.message) == "The release to Gates was halted: 3 devices failed."


def test_push_ends_as_its_push_does(alice, model, data):
    PushTarget.objects.create(owner=alice, name="Shelf", kind="put", address="http://127.0.0.1:9/models")
    run = shipped(alice, model, data, kind="push", **{"with": {"target": "Shelf", "content": "files"}})
    push = Push.objects.get()
    assert (push.content, poll(run).state) == ("files", "started")

    Push.objects.update(state="done", landed="models/cells.zip", ended_at=now())
    assert poll(run).outputs["file"]["label"] == "models/cells.zip"

    run = shipped(alice, model, data, kind="push", **{"with": {"target": "Shelf"}})
    runs.cancel(run)
    loop.advance_run(run.pk)
    assert [row.state for row in Push.objects.order_by("pk")] == ["done", "stopped"]


def test_predict_counts_and_its_answers_become_a_version(alice, model, data):
    how = {"kind": "predict", "with": {"version": True, "min_score": 0.4},
           "from": {"model": "train.model", "data": "cells.data"}}  # fmt: skip
    run = shipped(alice, model, data, **how)
    prediction = Prediction.objects.get()
    assert prediction.params["score_threshold"] == 0.4
    outputs = work.run_dir(prediction.job, 1).outputs
    outputs.mkdir(parents=True, exist_ok=True)
    (outputs / "summary.json").write_text(json.dumps({"done": 6, "total": 6, "predictions": 30, "complete": True}))
    end(prediction.job)
    loop.advance_run(run.pk)

    intake = PredictedData.objects.get().intake
    assert (intake.source_version, step(run, "it").state) == (data, "started")
    Import.objects.filter(pk=intake.pk).update(state="done", version=data)
    assert loop.advance_due() == 1
    row = step(run, "it")
    assert (row.state, row.outputs["data"]["id"]) == ("ok", data.pk)
    assert row.outputs["figures"]["values"] == {
        "done": 6,
        "total": 6,
        "predictions": 30,
        "broken": 0,
        "images_per_s": 0,
    }


def test_webhook_waits_until_it_was_taken_and_signs_only_what_goes_to_ones_own(alice, model, data):
    how = {"kind": "webhook", "from": {"for": ["train.model", "train.figures"]}}
    run = shipped(alice, model, data, **how, **{"with": {"url": "https://example.org/hook", "text": "shipped"}})
    sent = Delivery.objects.get()
    assert (sent.target, sent.secret) == ("https://example.org/hook", "")
    facts = sent.title.facts
    assert (facts["run"], facts["step"], facts["text"]) == (run.pk, "it", "shipped")
    assert facts["outputs"][0] == {"type": "model", "id": model.pk, "label": "cells v1"}
    assert facts["outputs"][1]["values"] == {"AP50": 0.91}
    assert poll(run).state == "started"
    Delivery.objects.update(state="sent")
    assert poll(run).state == "ok"

    NoticeChoices.objects.create(user=alice, mail=[], webhook_url="https://own.example/", webhook_secret="s" * 40)
    run = shipped(alice, model, data, **how)
    sent = Delivery.objects.order_by("-pk").first()
    assert (sent.target, sent.secret) == ("https://own.example/", "s" * 40)
    Delivery.objects.filter(pk=sent.pk).update(
        state="failed", error={"code": "delivery.answered", "facts": {"status": 404}}
    )
    assert "404" in str(poll(run).message)


def test_steps_refuse_early_what_could_only_fail_after_hours(alice, model, data):
    bad = {
        "register": {}, "convert": {"targets": "fp16 fp7"}, "edge": {"group": "Gates"},
        "serve": {"service": "demo", "mode": "canary", "percent": 100},
        "push": {"target": "bob/Shelf"}, "webhook": {"url": "http://127.0.0.1/admin"},
    }  # fmt: skip
    steps = {
        "cells": {"kind": "dataset", "with": {"dataset": data.dataset.name}},
        "train": {"kind": "train", "from": {"data": "cells.data"}},
        **{
            kind: {"kind": kind, "with": params, "from": {} if kind == "webhook" else {"model": "train.model"}}
            for kind, params in bad.items()
        },
    }
    with pytest.raises(Invalid) as refused:
        runs.start(user=alice, version=writing.newest_or_refused(pipeline(alice, steps)))

    assert sorted(error.blamed for error in refused.value.every) == sorted(bad)


def test_a_model_comes_into_a_run_by_its_name(alice, tmp_path):
    version = factory.model_version(alice, tmp_path)
    run = begun(alice, {"take": {"kind": "model", "with": {"model": f"{version.model.name}:{version.number}"}}})

    assert run.state == "ok"
    assert step(run, "take").outputs["model"]["id"] == version.pk

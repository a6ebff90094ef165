"""The home page: sections by role, true progress, the first-run guide, approvals."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils.timezone import now

from accounts.models import Role
from accounts.models.people import Guide
from aiplatform.pages.home.sections import SECTIONS, Section
from datasets.models import Dataset
from inference.evaluation.home import best_models
from inference.evaluation.models import Evaluation
from inference.kit.task_kinds import TASKS as SERVED_TASKS
from inference.registry.models import Model
from tests.factories import datasets, models, work
from training.runs.models import TrainingJob
from workers.core.models import Device, Job, Node


def shown(client: Client) -> dict:
    """Return the context of each section that is not empty, by key."""
    columns = client.get("/").context["columns"]
    return {section.key: section.data for sections in columns.values() for section in sections if section.data}


def next_page(client: Client) -> str | None:
    start = shown(client)["guide"]["start"]
    return start and start.path


def training(owner, cluster, name="cells", **columns) -> Job:
    job = Job.objects.create(owner=owner, cluster=cluster, kind="training", name=name, **columns)
    TrainingJob.objects.create(job=job, preset="detect", version_label="cells v1")
    return job


def test_home_reads_the_database_a_fixed_number_of_times(alice, as_alice, cluster, django_assert_max_num_queries):
    for n in range(12):
        training(alice, cluster, f"job {n}")
    node = Node.objects.create(name="n1", heartbeat_at=now(), facts={"cpu_percent": 95})
    Device.objects.create(node=node, kind="gpu", index=0, used=8)
    Device.objects.create(node=node, kind="gpu", index=1)

    with django_assert_max_num_queries(40):
        sections = shown(as_alice)

    assert (sections["cluster"]["free_gpus"], sections["cluster"]["busy_gpus"]) == (1, 1)
    assert sections["cluster"]["usages"][1]["hue"] == "is-wait"  # 95 % of the CPU
    assert len(sections["jobs"]["rows"]) == 8
    assert sections["jobs"]["more"]


def test_b05_home_shows_no_jobs_of_other_users(alice, as_bob, cluster):
    training(alice, cluster, "private of alice", state="running")
    training(alice, cluster, "ended of alice", state="succeeded")

    page = as_bob.get("/").content.decode()

    assert "of alice" not in page


def test_home_shows_no_empty_section(as_alice):
    page = as_alice.get("/").content.decode()

    assert set(shown(as_alice)) == {"guide", "cluster"}
    for heading in ("Running and queued", "Latest results", "Best model per dataset", "Waiting for your decision"):
        assert heading not in page


def test_home_of_an_annotator_has_neither_guide_nor_jobs(as_anna):
    sections = shown(as_anna)

    assert set(sections) <= {"annotation"}
    assert "Datasets to annotate appear here." in as_anna.get("/").content.decode()


def test_home_shows_preparation_by_its_counter_and_training_in_percent(alice, as_alice, cluster):
    training(alice, cluster, state="running", phase="packing", phase_done=120, phase_total=364, progress=0.33, eta_s=9)
    preparing = as_alice.get("/").content.decode()
    Job.objects.update(phase="learning", phase_done=5, phase_total=10, progress=0.5, eta_s=120)
    learning = as_alice.get("/").content.decode()

    assert "120 / 364" in preparing
    assert "33 %" not in preparing
    assert "9 s left" not in preparing
    assert "50 %" in learning
    assert "2 min left" in learning


def test_row_of_a_job_has_its_actions_and_returns_to_home(alice, as_alice, cluster):
    job = training(alice, cluster)

    page = as_alice.get("/").content.decode()
    answer = as_alice.post(f"/jobs/{job.pk}/do/stop/", {"next": "/"})

    assert f'action="/jobs/{job.pk}/do/stop/"' in page
    assert f'action="/jobs/{job.pk}/do/pause/"' not in page  # it waits
    assert answer["Location"] == "/"
    assert Job.objects.get().state == "stopped"


def test_home_reports_a_node_that_is_down(as_alice):
    Node.objects.create(name="gpu-07", state=Node.State.UNREACHABLE, heartbeat_at=now() - timedelta(minutes=3))

    page = as_alice.get("/").content.decode()

    assert "Node gpu-07 does not respond" in page
    assert "1 down" in page


def test_refresh_returns_the_live_sections_only_and_clears_those_that_became_empty(alice, as_alice, cluster):
    training(alice, cluster)
    before = as_alice.get("/", headers={"HX-Request": "true"}).content.decode()
    Job.objects.update(state="stopped")
    after = as_alice.get("/", headers={"HX-Request": "true"}).content.decode()

    assert "<html" not in before
    assert 'id="home-jobs" class="home-section" hx-swap-oob="true">' in before
    assert "Running and queued" in before
    assert 'id="home-jobs" class="home-section" hx-swap-oob="true"></div>' in after
    assert "home-guide" not in before


def test_result_has_its_key_metric_and_curve(alice, as_alice, cluster):
    from workers.jobs.output import metrics

    job = work.job(alice, cluster, state="running", kind="training", name="cells")
    TrainingJob.objects.create(job=job, preset="detect", version_label="cells v1", metrics={"val/ap50": 0.91})
    attempt = job.attempts.get()
    metrics.add(attempt, [("val/ap50", step, 0.3 * step, now()) for step in range(1, 4)])
    Job.objects.update(state="succeeded", ended_at=now())

    (row,) = shown(as_alice)["results"]["rows"]

    assert (str(row.metric), row.subject) == ("AP50 · val 0.910", "cells v1")
    assert row.line == "2,22.0 48,12.0 94,2.0"


def test_best_model_of_a_dataset_is_that_of_the_test_split(alice, cluster, tmp_path):
    data = datasets.version(datasets.dataset(alice, "cells"))
    model = models.model_version(alice, tmp_path, name="net")
    key = SERVED_TASKS["detection"].pages.headline[0]
    for split, value in (("", 1.0), ("test", 0.7), ("train", 1.0), ("val", 0.8), ("test", 0.6)):
        Evaluation.objects.create(
            job=work.job(alice, cluster, state="succeeded", kind="evaluation", name="e"), model_version=model,
            version=data, split=split, task="detection", metrics={key: value}, published_attempt=1,
        )  # fmt: skip

    (best,) = best_models(alice)["rows"]
    Evaluation.objects.filter(split="test").delete()
    (second,) = best_models(alice)["rows"]

    assert best.metric.text == "0.700"
    assert second.metric.text == "0.800"


def test_registered_section_is_shown_to_those_with_its_action_only(as_alice, as_anna):
    section = Section(
        "extra", "home/_storage.html", lambda user: {"used": 7, "limit": 0}, needs="jobs.view", order=1, column="side"
    )

    with SECTIONS.temporarily(section):
        pages = [client.get("/").content.decode() for client in (as_alice, as_anna)]

    assert ["7 B" in page for page in pages] == [True, False]


def test_guide_leads_from_images_to_an_endpoint(alice, as_alice, cluster):
    assert next_page(as_alice) == "/datasets/new/"

    dataset = Dataset.objects.create(owner=alice, name="cells")
    version = dataset.versions.create(number=1, state="ready", image_count=3)
    assert next_page(as_alice) == "/annotation/projects/new/"

    version.annotated = True
    version.save()
    assert next_page(as_alice) == "/training/new/"

    job = training(alice, cluster)
    assert shown(as_alice)["guide"]["current"].path == "/models/"  # the model appears when the training ends
    assert next_page(as_alice) is None

    Model.objects.create(owner=alice, name="cells")
    assert next_page(as_alice) == "/evaluations/new/"

    for kind in ("evaluation", "service"):
        Job.objects.create(owner=alice, cluster=cluster, kind=kind, name=kind)
    assert "guide" not in shown(as_alice)  # complete: the workspace is optional
    assert job.pk


def test_guide_offers_only_what_the_user_may_do(alice, as_alice):
    alice.roles.set([Role.objects.create(name="reader", actions=["overview.view", "datasets.view", "self.manage"])])

    assert "guide" not in shown(as_alice)
    assert "Create dataset" not in as_alice.get("/").content.decode()


@pytest.mark.parametrize("shown_again", [False, True])
def test_guide_is_dismissed_for_the_user_and_shown_again_from_the_home_page(alice, as_alice, shown_again):
    as_alice.post("/guide/")
    hidden = "guide" not in shown(as_alice)
    if shown_again:
        as_alice.post("/guide/", {"shown": "1"})
    alice.refresh_from_db()

    assert hidden
    assert alice.guide == (Guide.SHOWN if shown_again else Guide.HIDDEN)
    assert ("guide" in shown(as_alice)) is shown_again
    assert ("Show the first-run guide" in as_alice.get("/").content.decode()) is not shown_again
    assert as_alice.get("/guide/").status_code == 405


def test_registrations_wait_for_those_who_manage_people(as_olga, as_alice, bob):
    bob.awaiting, bob.is_active = True, False
    bob.save()

    rows = shown(as_olga)["approvals"]["rows"]

    assert [(row["label"], row["row"].url) for row in rows] == [("Registration", "/people/?state=awaiting")]
    assert "approvals" not in shown(as_alice)


def test_home_of_an_operator_shows_alerts_queue_and_nodes_of_all(olga, alice, as_olga, cluster):
    training(alice, cluster, "running of alice", state="running")
    training(alice, cluster, "failed of alice", state="failed", ended_at=now())
    training(alice, cluster, "failed long ago", state="failed", ended_at=now() - timedelta(days=2))
    node = Node.objects.create(
        name="n1", state=Node.State.LIVE, heartbeat_at=now(),
        facts={"cpu_percent": 95, "memory_used_mib": 512, "memory_total_mib": 1024,
               "disk_free_bytes": 25, "disk_total_bytes": 100},
    )  # fmt: skip

    sections = shown(as_olga)
    page = as_olga.get("/").content.decode()

    assert not {"guide", "cluster"} & set(sections)
    assert {str(row["label"]): row["count"] for row in sections["counts"]["counts"]} == {
        "Active alerts": 0, "Running jobs": 1, "Queued jobs": 0, "Failed in 24 hours": 1, "Live nodes": 1,
    }  # fmt: skip
    (row,) = sections["nodes"]["rows"]
    assert [use["percent"] for use in row["uses"]] == [None, 95, 50, 75]
    assert f'href="/cluster/nodes/{node.pk}/"' in page
    assert "running of alice" in page
    assert [row["job"].name for row in sections["ended"]["rows"]] == ["failed long ago", "failed of alice"]


def test_first_user_of_a_platform_has_the_guide_although_an_operator(olga, as_olga):
    from accounts.models import User

    User.objects.exclude(pk=olga.pk).update(is_active=False)

    assert "guide" in shown(as_olga)

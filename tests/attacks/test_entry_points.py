"""Cases that belong to no single room: cookies, file downloads, messages, secrets, quotas."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys

import pytest
from django.test import Client, override_settings
from rest_framework.test import APIClient

from annotation.models import Shape
from tests.architecture.code import APPS, modules_with, tree, where
from tests.conftest import signed_in
from tests.factories import annotation, models, work
from tests.factories import datasets as data
from workers import tasks
from workers.core.models import Job, VirtualCluster
from workers.core.runs import RunDir
from workers.jobs import submission
from workers.planning.planner.snapshot import FULL_CARD, Quota
from workers.resources.clusters import quotas
from workers.scheduling.loop import Scheduler

pytestmark = pytest.mark.django_db


def by_token(user) -> APIClient:
    made = APIClient()
    made.force_authenticate(user)
    return made


SETTINGS_OF_A_HOST = (
    "import os; os.environ['AIP_BASE_URL'] = 'https://train.example.org'\n"
    "from django.conf import settings as s\n"
    "print(s.SESSION_COOKIE_NAME, s.CSRF_COOKIE_NAME, s.SESSION_COOKIE_SECURE, s.CSRF_COOKIE_SECURE,\n"
    "      s.SESSION_COOKIE_HTTPONLY, s.SESSION_COOKIE_SAMESITE, s.SESSION_COOKIE_DOMAIN, s.SESSION_COOKIE_PATH)\n"
)


def test_a07_cookies_under_tls_belong_to_this_host_alone(tmp_path):
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "aiplatform.settings", "AIP_DATA_ROOT": str(tmp_path)}
    said = subprocess.run(
        [sys.executable, "-c", SETTINGS_OF_A_HOST], env=env, capture_output=True, text=True, check=True
    )

    assert said.stdout.split() == ["__Host-session", "__Host-csrf", "True", "True", "True", "Lax", "None", "/"]


def test_a07_session_cookie_is_out_of_reach_of_scripts_and_foreign_pages(alice):
    client = Client()
    alice.set_password("correct horse battery")
    alice.save()

    client.post("/login/", {"username": "alice", "password": "correct horse battery"})
    cookie = client.cookies["sessionid"]

    assert (cookie["httponly"], cookie["samesite"], cookie["path"], cookie["domain"]) == (True, "Lax", "/", "")


def test_a07_entry_points_take_no_secret_from_an_address(alice):
    from accounts.services import tokens

    _row, secret = tokens.issue(user=alice, name="script")
    session = signed_in(alice).cookies["sessionid"].value

    for query in (f"token={secret}", f"access_token={secret}", f"sessionid={session}"):
        assert Client().get(f"/api/v1/me/?{query}").status_code in {400, 401}, query


def file_addresses(alice, cluster, tmp_path) -> list[str]:
    """Addresses of stored bytes of each kind, all Alice's."""
    version = data.version(data.dataset(alice, "cells"))
    asset = version.assets.order_by("pk").first()
    drawn = annotation.first_task(alice)
    set_ = f"/annotation/projects/{drawn.set.project_id}/tasks/{drawn.pk}/"
    model = models.model_version(alice, tmp_path)
    job = work.job(alice, cluster, state="succeeded")
    work.run_dir(job).log.write_text("said")
    return [
        f"/datasets/images/{asset.pk}/thumbnail/", f"/datasets/images/{asset.pk}/original/",
        f"/datasets/{version.dataset_id}/v{version.number}/download/", f"/api/v1/assets/{asset.pk}/image/",
        f"/api/v1/assets/{asset.pk}/thumbnail/", f"/api/v1/versions/{version.pk}/download/", f"{set_}image/",
        f"{set_}thumbnail/", f"/models/versions/{model.pk}/download/", f"/api/v1/model-versions/{model.pk}/download/",
        f"/api/v1/jobs/{job.pk}/log/?offset=0", f"/api/v1/jobs/{job.pk}/log/raw/", f"/api/v1/jobs/{job.pk}/metrics/",
    ]  # fmt: skip


def test_b06_file_routes_all_check_whose_the_file_is(alice, bob, cluster, tmp_path):
    addresses = file_addresses(alice, cluster, tmp_path)
    mine, strangers, nobody = signed_in(alice), signed_in(bob), Client()

    for address in addresses:
        answer = mine.get(address)
        for close in answer._resource_closers:  # the file only: closing the answer would close the database too
            close()
        assert answer.status_code == 200, address
        assert strangers.get(address).status_code == 404, address
        assert nobody.get(address).status_code in {302, 401}, address


def test_b10_annotation_edit_with_another_projects_class_writes_nothing(alice, bob):
    mine, theirs = annotation.first_task(bob), annotation.first_task(alice)
    url = f"/api/v1/annotation/projects/{mine.set.project_id}/tasks/{mine.pk}/shapes/"
    foreign = annotation.put(mine, label=theirs.set.labels.get(name="cat").pk)

    answer = by_token(bob).post(url, {"events": [annotation.put(mine), foreign]}, format="json")
    outside = by_token(bob).post(
        f"/api/v1/annotation/projects/{mine.set.project_id}/tasks/{theirs.pk}/shapes/",
        {"events": [annotation.put(theirs)]},
        format="json",
    )

    assert answer.status_code == 400
    assert outside.status_code == 404
    assert not Shape.objects.exists()


@pytest.mark.parametrize(
    "path", ["training/jobs/", "models/", "services/", "evaluations/", "nodes/", "devices/", "jobs/", "clusters/"]
)
def test_c04_annotator_role_does_only_annotation(anna, path):
    assert by_token(anna).get(f"/api/v1/{path}").status_code == 403
    assert by_token(anna).post(f"/api/v1/{path}", {}, format="json").status_code in {403, 405}


def test_c04_menu_of_an_annotator_has_nothing_else(anna):
    page = signed_in(anna).get("/annotation/").content.decode()

    for address in ("/training/", "/models/", "/services/", "/queue/", "/cluster/", "/tasks/", "/people/", "/admin/"):
        assert f'href="{address}' not in page, address


@pytest.mark.parametrize(
    "value", ["LD_PRELOAD", "PYTHONPATH", "PATH", "CUDA_VISIBLE_DEVICES", "DJANGO_SETTINGS_MODULE"]
)
def test_f04_entry_points_take_no_environment_variables(alice, cluster, value):
    """No entry point takes environment variables: what a job sees is the run contract and its kind's own words."""
    answer = by_token(alice).post("/api/v1/training/jobs/", {"name": "a", "env": {value: "/tmp/x"}}, format="json")

    assert answer.status_code == 400
    assert not Job.objects.exists()


def test_f07_broker_messages_carry_ids_only():
    """What travels through the broker can name a row and nothing more: an id, a rank, or where to go on."""
    found = []
    for path in modules_with("enqueue", *APPS, "aiplatform"):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "enqueue":
                found += [
                    f"{where(path, node.lineno)}: {word.arg}"
                    for word in node.keywords
                    if word.arg != "queue" and not (word.arg or "").endswith(("_id", "_ids", "rank", "after"))
                ]

    assert found == []


def test_f07_broker_message_that_is_forged_starts_nothing_unplaced(alice, cluster):
    waiting = work.job(alice, cluster)
    over = work.job(alice, cluster, state="succeeded")

    shutil.rmtree(RunDir.for_attempt(waiting.pk, 1).path.parent, ignore_errors=True)
    shutil.rmtree(RunDir.for_attempt(over.pk, 1).path.parent, ignore_errors=True)

    for attempt in (10**9, over.attempts.get().pk):
        tasks.start(attempt_id=attempt)
        tasks.start(attempt_id=attempt, rank=7)
        tasks.start_each(ids=[attempt])
    tasks.finish(ids=[10**9])

    assert not RunDir.for_attempt(waiting.pk, 1).path.exists()
    assert not (RunDir.for_attempt(over.pk, 1).path / "supervisor.json").exists()


def test_h05_job_output_is_never_shown_as_the_platforms_words(alice, cluster):
    job = work.job(alice, cluster, state="running")
    work.run_dir(job).log.write_text("[platform] finished OK\n")

    part = signed_in(alice).get(f"/api/v1/jobs/{job.pk}/log/?offset=0").json()
    story = by_token(alice).get(f"/api/v1/jobs/{job.pk}/events/").json()
    job.refresh_from_db()

    assert part["text"] == "[platform] finished OK\n"
    assert (part["ended"], job.state) == (False, "running")
    assert "finished OK" not in json.dumps(story)


def test_k04_error_pages_and_admin_site_show_no_secret(olga, alice):
    from accounts.services import tokens

    row, secret = tokens.issue(user=alice, name="script")
    admin = signed_in(olga)
    user = admin.get(f"/admin/accounts/user/{alice.pk}/change/").content.decode()
    token = admin.get(f"/admin/accounts/apitoken/{row.pk}/change/", follow=True).content.decode()
    with override_settings(DEBUG=False):
        missing = Client(raise_request_exception=False).get("/nowhere/").content.decode()

    assert alice.password not in user
    assert secret not in token
    assert row.digest not in token
    assert "Traceback" not in missing
    assert "urlpatterns" not in missing
    for path in ("/static/", "/media/", "/.env", "/.git/config", "/metrics"):
        assert Client().get(path).status_code in {302, 401, 403, 404}, path


def test_k05_secrets_stay_out_of_messages_lists_and_job_folders(
    alice, cluster, sent, settings, django_capture_on_commit_callbacks
):
    settings.NODE = "node1"
    node = work.node(cores=2)
    with django_capture_on_commit_callbacks(execute=True):
        submission.submit(owner=alice, cluster=cluster, kind="command", name="a")
        Scheduler("test").tick()

    assert node
    assert settings.SECRET_KEY not in json.dumps(sent)
    assert {key for _name, words in sent for key in words} <= {"attempt_id", "rank", "ids"}
    assert all(isinstance(number, int) for _name, words in sent for number in words.get("ids", []))


def test_l01_scheduler_keeps_the_quota_for_twenty_at_once(alice, cluster):
    """However many are sent, the cluster holds what it may: the rest waits with a reason."""
    work.node(gpus=8, cores=32)

    limit_cards(cluster, 3)
    for number in range(20):
        submission.submit(owner=alice, cluster=cluster, kind="command", name=f"job{number}", gpus_per_node=1)

    Scheduler("one").tick()

    placed = Job.objects.filter(state="assigned")
    assert placed.count() == 3
    assert sum(a.share for job in placed for a in job.attempts.get().allocations.all()) == 3 * FULL_CARD
    assert set(Job.objects.filter(state="queued").values_list("wait_code", flat=True)) == {"cluster_quota"}


def limit_cards(cluster: VirtualCluster, cards: int) -> None:
    """Give the cluster so many cards and no more."""
    quotas.set_quotas(cluster, {"gpu": Quota(cards)})


def test_l03_annotation_conflict_gives_the_second_annotator_both_versions(alice, anna):
    from annotation.services import projects

    task = annotation.first_task(alice)
    projects.add_member(task.set.project, username="anna", by=alice)
    url = f"/api/v1/annotation/projects/{task.set.project_id}/tasks/{task.pk}/shapes/"
    drawn = annotation.put(task)
    by_token(alice).post(url, {"events": [drawn]}, format="json")
    moved = {"shape": drawn["shape"], "base": 1}
    by_token(anna).post(
        url, {"events": [annotation.put(task, rings=[[2.0, 2.0, 9.0, 2.0, 9.0, 9.0]], **moved)]}, format="json"
    )

    late = by_token(alice).post(url, {"events": [annotation.put(task, **moved)]}, format="json")

    assert (late.status_code, late.json()["code"]) == (409, "conflict")
    assert late.json()["results"][0]["theirs"]["rings"] == [[2.0, 2.0, 9.0, 2.0, 9.0, 9.0]]

"""Creating environments: one service, two faces, and what it refuses."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils.timezone import now

from aiplatform import env
from datasets.files import changes, homes
from datasets.files.usage import HomeFull
from tests.factories import training as factory
from training.environments import services
from training.environments.models import Environment
from workers.core import kinds
from workers.core.models import Job, VirtualCluster
from workers.images.models import ImageUse
from workers.images.store import catalog, engines

pytestmark = pytest.mark.postgres

API = "/api/v1/environments/"
PAGE = "/environments/new/"


def form(**more):
    """The shortest form, as the page fills it."""
    return {"gpus_per_node": 0, "cpus": 1, "priority": 0} | more


def test_fit_of_a_distributed_environment_without_nodes_is_not_known(as_alice, machine):
    def verdict(**more):
        return as_alice.post("/environments/fit/", form(**more)).context["verdict"]

    distributed = verdict(task_type="distributed", nodes="")

    assert (distributed.kind, distributed.sentence) == ("unknown", "Nodes: Enter the number of nodes: 2 or more.")
    assert verdict(task_type="regular", nodes="").kind == "now"
    assert verdict(task_type="distributed", nodes="3").kind == "never"


def test_environment_needs_nothing_said(api, machine):
    answer = api.post(API, {}, format="json")

    row = Environment.objects.get(pk=answer.json()["id"])
    assert answer.status_code == 201
    assert (row.job.name, row.job.kind, row.job.gpus_per_node) == ("alice_lab", "environment", 0)
    assert answer.json()["url"] == f"/jobs/{row.pk}/"


def test_environment_from_the_page_leads_to_its_job(as_alice, machine, cells):
    fields = form(folder="work/cells", variables="A=1", datasets=[cells.pk], idle_hours="1.5", description="try it")

    answer = as_alice.post(PAGE, fields)

    row = Environment.objects.get()
    assert answer["Location"] == f"/jobs/{row.pk}/"
    assert (row.folder, row.variables, row.idle_hours) == ("work/cells", {"A": "1"}, 1.5)
    assert [given.name for given in row.inputs.all()] == ["cells v1"]


def test_environment_page_and_list_show_it_to_its_owner_and_operators_alone(submitted, api, as_bob, as_olga, as_alice):
    row = submitted(name="Mine", description="try it")

    assert "try it" in as_alice.get("/environments/").content.decode()
    assert "Mine" in as_alice.get(f"/jobs/{row.pk}/").content.decode()
    assert "h-environment" in as_alice.get(f"/environments/{row.pk}/state/").content.decode()
    assert as_olga.get(f"/environments/{row.pk}/state/").status_code == 200
    assert as_bob.get(f"/environments/{row.pk}/state/").status_code == 404
    assert "Mine" not in as_bob.get("/environments/").content.decode()
    assert api.get(f"{API}{row.pk}/").json()["condition"] == ""


def test_environment_secrets_and_token_are_never_shown(api, as_alice, machine):
    made = api.post(API, {"secrets": {"HUB_KEY": "open-sesame"}}, format="json").json()

    row = Environment.objects.get(pk=made["id"])
    token = services.token_of(row)
    pages = [as_alice.get(url).content.decode() for url in (f"/jobs/{row.pk}/", f"{PAGE}?clone={row.pk}")]
    shown = json.dumps([made, api.get(f"{API}{row.pk}/").json(), row.job.spec, row.secrets, row.token, *pages])
    assert len(token) > 20
    assert token not in shown
    assert "open-sesame" not in shown
    assert "HUB_KEY" in pages[0]


def test_environment_refuses_everything_wrong_in_one_answer(api, machine, bob):
    his = factory.version(bob, "his")
    sent = {
        "name": "!", "folder": "../up", "variables": {"1A": "x"}, "secrets": {"SHORT": "abc"}, "idle_hours": -1,
    }  # fmt: skip

    answer = api.post(API, sent, format="json")
    foreign = api.post(API, {"datasets": [his.pk]}, format="json")

    assert answer.status_code == 400
    assert set(answer.json()["errors"]) == {"name", "folder", "variables", "secrets", "idle_hours"}
    assert foreign.status_code == 400
    assert not Environment.objects.exists()


@pytest.mark.parametrize("folder", ["/etc", "a/../..", "..", "a\nb", "x" * 300])
def test_environment_folder_stays_in_the_home(api, machine, folder):
    assert api.post(API, {"folder": folder}, format="json").status_code == 400


def test_environment_folder_is_cleaned():
    assert [services.check_folder(text) for text in ("", ".", "~/lab/", " a//b ")] == ["", "", "lab", "a/b"]


def test_environment_counts_as_one_and_is_limited_per_person(alice, api, machine, cluster):
    VirtualCluster.objects.filter(pk=cluster.pk).update(environments_per_user=0)

    answer = api.post(API, {}, format="json")

    assert kinds.class_of("environment") == "environment"
    assert (answer.status_code, answer.json()["code"]) == (409, "never_fits")


def test_environment_idle_time_is_the_platforms_at_most(submitted, monkeypatch):
    monkeypatch.setattr(env, "ENVIRONMENT_IDLE_HOURS", 3.0)
    mine, usual = submitted(idle_hours=2.0), submitted()

    assert services.idle_limit(mine) == timedelta(hours=2)
    assert services.idle_limit(usual) == timedelta(hours=3)
    monkeypatch.setattr(env, "ENVIRONMENT_IDLE_HOURS", 1.0)
    assert services.idle_limit(mine) == timedelta(hours=1)
    monkeypatch.setattr(env, "ENVIRONMENT_IDLE_HOURS", 0.0)
    assert services.idle_limit(usual) is None


def test_environment_preview_queues_nothing(api, machine):
    answer = api.post(f"{API}preview/", {}, format="json")

    assert answer.json()["kind"] == "now"
    assert not Job.objects.exists()


def test_environment_sent_twice_with_one_key_is_made_once(api, machine):
    for _time in range(2):
        answer = api.post(API, {}, format="json", headers={"Idempotency-Key": "k" * 16})
        assert answer.status_code == 201

    assert Environment.objects.count() == 1


def test_environment_can_be_begun_again_with_the_same_values(submitted, as_alice, cells):
    row = submitted(
        folder="work", datasets=[cells], variables={"A": "1"}, secrets={"HUB": "open-sesame"}, idle_hours=1.0
    )

    page = as_alice.get(f"{PAGE}?clone={row.pk}")

    initial = page.context["form"].initial
    assert (initial["folder"], initial["datasets"], initial["variables"]) == ("work", [cells.pk], "A=1")
    assert (initial["secrets"], initial["idle_hours"]) == ("HUB=\n", 1.0)


def test_version_that_an_environment_reads_names_it(submitted, cells, as_alice):
    from training.environments.usage import environments_on

    row = submitted(datasets=[cells], name="Reader")

    assert environments_on(cells) == ["workspace Reader of Alice"]
    Job.objects.filter(pk=row.pk).update(state="stopped")
    assert environments_on(cells) == []


def test_environment_runs_in_the_built_in_image_or_in_one_that_its_owner_may_use(api, machine, alice, bob):
    his, mine = (engines.build(user=user, name="lab", requirements="jupyterlab") for user in (bob, alice))
    boards = catalog.builtin("tensorboard")

    usual = api.post(API, {}, format="json").json()
    chosen = api.post(API, {"image": mine.pk}, format="json").json()
    refused = [api.post(API, {"image": image.pk}, format="json") for image in (his, boards)]

    uses = {use.pk: use for use in ImageUse.objects.all()}
    assert (uses[usual["id"]].image.built_in, uses[usual["id"]].boxed) == ("jupyter", True)
    assert (uses[chosen["id"]].image, uses[chosen["id"]].boxed) == (mine, True)
    assert (usual["image"], chosen["image"]) == ("jupyter", "lab")
    assert [set(answer.json()["errors"]) for answer in refused] == [{"image"}] * 2
    assert services.as_request(Environment.objects.get(pk=usual["id"]))["image"] is None
    assert services.as_request(Environment.objects.get(pk=chosen["id"]))["image"] == mine


def test_environment_is_refused_in_a_home_that_holds_more_than_it_may(submitted, alice, monkeypatch):
    """The disk knows no such bound, so a job may have written more than the person could have brought."""
    job = submitted().job
    (homes.home_of(alice) / "big").write_bytes(b"x" * 11)
    monkeypatch.setattr(env, "HOME_QUOTA_BYTES", 10)

    with pytest.raises(HomeFull, match=r"Your files use 11 of 10 bytes.") as refused:
        submitted()
    with pytest.raises(HomeFull):
        kinds.get("environment").check_restore(job)
    changes.delete(alice, "big")

    assert refused.value.facts == {"quota": 10, "used": 11}
    assert submitted()
    kinds.get("environment").check_restore(job)


@pytest.mark.parametrize("url", ["/environments/", API])
def test_environment_list_costs_the_same_however_many_have_ended(submitted, as_alice, url):
    def asked():
        with CaptureQueriesContext(connection) as queries:
            assert as_alice.get(url).status_code == 200
        return len(queries)

    def ended(count):
        rows = [submitted(name=f"e{number}") for number in range(count)]
        Job.objects.filter(pk__in=[row.pk for row in rows]).update(state="stopped")

    ended(1)
    asked()  # what is read once in a process is
    few = asked()
    ended(5)

    assert asked() <= few


def test_environment_that_was_deleted_is_restored_by_nobody(submitted):
    row = submitted()
    Job.objects.filter(pk=row.pk).update(state="stopped")
    before = kinds.capabilities_of(Job.objects.get(pk=row.pk)).restore
    Environment.objects.filter(pk=row.pk).update(deleted_at=now())

    assert (before, kinds.capabilities_of(Job.objects.get(pk=row.pk)).restore) == (True, False)

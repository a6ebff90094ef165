"""A new kind of job is registered, and nothing that shows, plans, limits or finds jobs changes for it."""

from __future__ import annotations

import ast
import re
from datetime import time

import pytest
from django.utils.timezone import now

from tests.architecture.code import ROOT, modules, modules_with, tree, where
from tests.conftest import signed_in
from tests.factories import work
from tests.fakes.notebooks.kind import NotebookKind
from workers.core import kinds
from workers.core.runs import RunDir
from workers.jobs.submission import NeverFits, submit
from workers.planning import planner_input
from workers.planning.planner.plan import Plan, plan
from workers.resources.clusters import resource_groups
from workers.resources.clusters.resource_groups import Hours
from workers.scheduling import preview

TOUCHED = {
    "training/apps.py": "one line: kinds.register(…), in the app that owns the kind",
    "aiplatform/settings.py": "one line, where the kind is an app with tables; it registers itself then",
    "aiplatform/urls.py": "one line, where the kind has pages of its own",
    "accounts/access/permissions.py": "where nobody could be allowed it yet: an Action and its words",
    "aiplatform/locale/zh_Hans/LC_MESSAGES/django.po": "its label and hint in Chinese",
}
"""What a kind changes outside its own folder, at most. The recipe in docs/subsystems/workers.md says the same."""

COMING = {"environment", "tensorboard"}
NAMED = {
    "workers/core/count_classes.py": {"environment"},  # the class that clusters limit, which several kinds may count as
    "workers/execution/reservations.py": {"gpu_reservation"},  # its own kind, which workers/apps.py registers
    "workers/execution/exec/peers.py": {"command"},  # what a rank starts in another, in the words of the exec server
    "workers/execution/exec/programs.py": {"command"},  # what is run, in the words of the exec server
    "workers/images/containers/registry.py": {"service"},  # a word of the distribution API: for whom a token is
    "workers/images/store/catalog.py": {"tensorboard"},  # an image of that name
    "workers/images/store/engines.py": {"image_build"},  # its own kind, which workers/images/kind.py registers
    "workers/core/models/media.py": {"video"},  # a kind of media that a program shows
    "workers/jobs/output/reporting/sdk_media.py": {"video"},  # the same
    "workers/supervisor/inside/rank_shell.py": {"command"},  # what is asked for, in the words of the exec server
    "workers/supervisor/log_lines.py": {"command", "environment"},  # phases of a log
    "workers/supervisor/inside/sessions.py": {"command"},  # a field of requests: what a shell is given
    "workers/planning/simulator/generators.py": {"training"},  # data: trainings of a recorded case
    "workers/access/ssh/api.py": {"command"},  # what a person types into a terminal
    "workers/access/ssh/gateway/session.py": {"command"},  # what a client runs, in the words of the exec server
    "workers/planning/simulator/workloads.py": {"training"},  # default kind of a line of a workload file
}


@pytest.fixture
def notebook(settings):
    settings.ROOT_URLCONF = "tests.fakes.notebooks.urls"
    with kinds.KINDS.temporarily(NotebookKind()):
        yield kinds.get("notebook")


@pytest.fixture
def mine(alice, cluster, notebook):
    return submit(owner=alice, kind="notebook", name="Scratch pad", cluster=cluster, cpus=1.0)


def decided() -> Plan:
    moment = now()
    return plan(planner_input.read(moment, ({}, {}), 3600.0), moment.timestamp())


def side_bar(client) -> list[tuple[str, str, str]]:
    groups = client.get("/account/").context["navigation"]
    tabs = [tab for group in groups for entry in group["entries"] for tab in entry["tabs"]]
    return [(tab["label"], tab["icon"], tab["url"]) for tab in tabs]


def test_registered_kind_waits_in_the_queue_with_its_label_and_icon(mine, as_alice, bob):
    page, others = as_alice.get("/queue/").content.decode(), signed_in(bob).get("/queue/").content.decode()
    row = as_alice.get("/api/v1/jobs/queue/").json()["waiting"][0]

    for shown in (page, others):
        assert re.search(r'icons[^"]*#keyboard"/></svg> Notebook</span>', shown)
    assert (row["name"], row["kind"], row["icon"]) == ("Scratch pad", "Notebook", "keyboard")


def test_registered_kind_is_listed_by_the_api_with_its_own_page(mine, api):
    row = api.get("/api/v1/jobs/?kind=notebook").json()["results"][0]

    assert (row["name"], row["kind"], row["kind_label"], row["kind_icon"]) == (
        "Scratch pad", "notebook", "Notebook", "keyboard",
    )  # fmt: skip
    assert (row["url"], row["preemptible"]) == (f"/notebooks/{mine.pk}/", True)


def test_registered_kind_can_be_chosen_among_the_tasks(mine, alice, cluster, olga):
    work.job(alice, cluster, name="Another")

    page = signed_in(olga).get("/tasks/?kind=notebook").content.decode()

    assert '<option value="notebook" selected>Notebook</option>' in page
    assert "Scratch pad" in page
    assert "Another" not in page


def test_registered_kind_has_its_job_page(mine, as_alice):
    to_its_own = as_alice.get(f"/jobs/{mine.pk}/")

    assert to_its_own["Location"] == f"/notebooks/{mine.pk}/"
    assert as_alice.get(to_its_own["Location"]).content == b"Scratch pad"


def test_registered_kind_stands_in_the_side_bar_of_those_who_may_see_it(notebook, as_alice, anna):
    hers, annas = side_bar(as_alice), side_bar(signed_in(anna))

    assert ("Notebooks", "keyboard", "/notebooks/") in hers
    assert [url for _label, _icon, url in annas if url == "/notebooks/"] == []


def test_registered_kind_is_a_step_of_the_guide_and_its_jobs_are_on_the_home_page(mine, as_alice, anna):
    hers, annas = as_alice.get("/"), signed_in(anna).get("/")
    sections = {row.key: row.data for column in hers.context["columns"].values() for row in column}
    step = next(row for row in sections["guide"]["steps"] if row["step"].path == "/notebooks/")

    assert (step["step"].label, step["step"].hint, step["done"]) == ("Notebooks", "Try things out", True)
    assert [(row.url, row.kind) for row in sections["jobs"]["rows"]] == [(f"/notebooks/{mine.pk}/", "Notebook")]
    assert "/notebooks/" not in annas.content.decode()


def test_registered_kind_is_found_by_those_who_may_see_it(mine, as_alice, bob, anna):
    found = as_alice.get("/search/?q=scratch").json()["results"]

    assert found == [
        {
            "kind": "Notebook",
            "icon": "keyboard",
            "name": "Scratch pad",
            "url": f"/notebooks/{mine.pk}/",
            "group": "object",
        }
    ]
    for stranger in (bob, anna):
        assert signed_in(stranger).get("/search/?q=scratch").json()["results"] == []


def test_registered_kind_counts_in_the_limit_it_names(mine, alice, cluster):
    work.node(cores=8)
    cluster.environments_per_user, cluster.jobs_per_user = 1, 1
    cluster.save()
    second = submit(owner=alice, kind="notebook", name="Second", cluster=cluster, cpus=1.0)
    job = submit(owner=alice, kind="command", name="A job", cluster=cluster, cpus=1.0)

    found = decided()

    assert {start.job for start in found.assignments} == {mine.pk, job.pk}
    assert (found.waits[second.pk].code, found.waits[second.pk].args) == (
        "user_environments", {"running": 1, "limit": 1},
    )  # fmt: skip


def test_registered_kind_is_refused_where_its_class_is_not_allowed(notebook, alice, cluster):
    work.node(cores=8)
    cluster.environments_per_user = 0
    cluster.save()

    with pytest.raises(NeverFits) as refused:
        submit(owner=alice, kind="notebook", name="Scratch pad", cluster=cluster, cpus=1.0)
    shown = preview.preview_request(alice, {"cpus": 1.0, "gpus_per_node": 0, "cluster": cluster}, kind="notebook")

    assert refused.value.facts["reason"] == "no_environments_allowed"
    assert (shown.kind, shown.sentence) == ("never", "default currently runs no workspaces.")


@pytest.mark.parametrize(("kept_for", "starts"), [("notebook", True), ("environment", True), ("training", False)])
def test_registered_kind_starts_on_machines_kept_for_it_or_its_class(mine, kept_for, starts):
    always = [Hours(frozenset(range(7)), time(0), time(0))]
    node = work.node(cores=8)
    resource_groups.save(None, name="group", nodes=[node], kinds=[kept_for], hours=always)

    assert [start.job for start in decided().assignments] == ([mine.pk] if starts else [])
    assert {"notebook", "environment", "training"} <= dict(resource_groups.kind_choices()).keys()


def test_registered_kind_says_what_may_be_done_with_its_jobs(mine):
    work.node(cores=8)
    (waiting,) = planner_input.read(now(), ({}, {}), 3600.0).waiting

    assert (waiting.kind, waiting.counts_as, waiting.preemptible) == ("notebook", "environment", True)
    assert (kinds.idle_guarded("notebook"), kinds.may_be_evicted("notebook")) == (False, True)
    assert kinds.capabilities_of(mine) == kinds.Capabilities()
    assert kinds.get("notebook").prepare(mine, mine.attempts.first(), RunDir.for_attempt(mine.pk, 1)).ports == 1


def test_job_kind_base_wants_to_be_told_what_to_start(alice, cluster):
    class Bare(kinds.JobKind):
        name, label = "bare", "Bare"

    with kinds.KINDS.temporarily(Bare()):
        job = work.job(alice, cluster, kind="bare")
        with pytest.raises(NotImplementedError, match="'bare' does not say what to start"):
            kinds.get("bare").prepare(job, job.attempts.first(), RunDir.for_attempt(job.pk, 1))
        assert kinds.url_of(job) == f"/jobs/{job.pk}/"
        assert kinds.get("bare").list_path() == ""


def test_new_kind_touches_few_files_outside_its_folder():
    recipe = (ROOT / "aiplatform/docs/subsystems/workers.md").read_text().partition("## Add a job kind")[2]

    assert len(TOUCHED) <= 5
    for path in TOUCHED:
        assert (ROOT / path).is_file()
        assert path.rpartition("/")[2] in recipe, f"The recipe does not say what becomes of {path}"


def test_folder_of_a_kind_is_known_to_its_app_only():
    """`training/commands/` holds the kind `command`: what an app of a kind looks like to the rest."""
    outside = [
        str(path.relative_to(ROOT))
        for path in modules("aiplatform", "accounts", "datasets", "annotation", "training", "inference", "workers")
        if "training.commands" in path.read_text() and "training/commands" not in str(path.relative_to(ROOT))
    ]

    assert outside == ["aiplatform/settings.py", "aiplatform/urls.py"]


def meanings() -> set[str]:
    """What `workers` may not name."""
    return COMING | set(kinds.names())


def meanings_in(module: ast.AST) -> list[tuple[str, int]]:
    """Names of kinds that stand as text in a module."""
    known = meanings()
    texts = (node for node in ast.walk(module) if isinstance(node, ast.Constant))
    return [(node.value, node.lineno) for node in texts if node.value in known]


def test_workers_name_no_kind_of_job():
    named = [
        f"{where(path, line)}: {word}"
        for path in modules_with("|".join(meanings()), "workers")
        for word, line in meanings_in(tree(path))
        if word not in NAMED.get(str(path.relative_to(ROOT)), set())
    ]
    shown = [
        str(path.relative_to(ROOT))
        for folder in ("templates/workers", "workers/static")
        for path in sorted((ROOT / folder).rglob("*.[hj]*"))
        if re.search(rf"""["'](?:{"|".join(meanings())})["']""", path.read_text())
    ]

    assert {"training", "evaluation", "service", "command"} <= meanings()
    assert named == [], "What differs between kinds is an attribute of workers.core.kinds.JobKind"
    assert shown == []


def test_job_kind_names_are_found_in_code():
    assert meanings_in(ast.parse('if job.kind == "training":\n    limit = {"service": 1}\n')) == [
        ("training", 1),
        ("service", 2),
    ]
    assert all((ROOT / path).is_file() for path in NAMED)

"""Resource groups: machines kept for kinds of jobs at certain hours of the site's clocks."""

from datetime import UTC, datetime, time

import pytest
from django.test import override_settings

from accounts.models import AuditEntry
from aiplatform.cli import doctor
from tests.factories import work
from workers.core.kinds import KINDS, JobKind
from workers.core.models import Job, ResourceGroup
from workers.jobs.submission import NeverFits, submit
from workers.planning import planner_input
from workers.planning.planner.plan import plan
from workers.resources.clusters import resource_groups
from workers.resources.clusters.resource_groups import Hours

pytestmark = pytest.mark.django_db

WORKDAYS = frozenset(range(5))
DAYTIME = Hours(WORKDAYS, time(9), time(21))


@pytest.fixture
def nodes(db):
    return [work.node(f"node{n}", gpus=1) for n in (1, 2)]


@pytest.fixture
def daytime(nodes):
    """node1 is for evaluations on workdays from 9 to 21."""
    return resource_groups.save(None, name="development", nodes=nodes[:1], kinds=["evaluation"], hours=[DAYTIME])


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)


def starts(owner, cluster, moment: datetime) -> int:
    """How many of two waiting jobs of one card each the planner would start at `moment`."""
    Job.objects.all().delete()
    for number in range(2):
        work.job(owner, cluster, name=f"job {number}", gpus_per_node=1, kind="command")
    return len(plan(planner_input.read(moment, ({}, {}), 3600.0), moment.timestamp()).assignments)


def test_resource_group_keeps_others_from_starting_in_its_hours_only(daytime, alice, cluster):
    thursday, night, saturday = at(2026, 1, 15, 12), at(2026, 1, 15, 22), at(2026, 1, 17, 12)

    assert [starts(alice, cluster, moment) for moment in (thursday, night, saturday)] == [1, 2, 2]


@override_settings(TIME_ZONE="Europe/Berlin")
def test_resource_group_hours_follow_the_site_clock_through_summer_time(daytime):
    friday_before = at(2026, 3, 27, 7, 30)  # 08:30 in Berlin
    monday_after = at(2026, 3, 30, 7, 30)  # 09:30 in Berlin: clocks went forward on Sunday

    winter, summer = (resource_groups.opening(daytime, moment) for moment in (friday_before, monday_after))

    assert (winter.is_open, summer.is_open) == (False, True)
    assert summer.until == at(2026, 3, 30, 19)  # 21:00 in Berlin


def test_resource_group_window_over_midnight_ends_the_next_day(nodes):
    night = resource_groups.save(
        None, name="night", nodes=nodes, kinds=["training"], hours=[Hours(frozenset({4}), time(22), time(6))]
    )

    late, early, after = at(2026, 1, 16, 23), at(2026, 1, 17, 5), at(2026, 1, 17, 7)

    assert [resource_groups.opening(night, moment).is_open for moment in (late, early, after)] == [True, True, False]


def test_resource_groups_on_one_machine_start_only_what_both_name(nodes, alice, cluster):
    resource_groups.save(None, name="one", nodes=nodes, kinds=["training", "command"])
    both = starts(alice, cluster, at(2026, 1, 15, 12))
    resource_groups.save(None, name="two", nodes=nodes[:1], kinds=["training"])

    assert (both, starts(alice, cluster, at(2026, 1, 15, 12))) == (2, 1)


def test_resource_group_refuses_at_submit_what_could_never_start(nodes, alice, cluster):
    resource_groups.save(None, name="development", nodes=nodes, kinds=["evaluation"])

    with pytest.raises(NeverFits, match="development"):
        submit(owner=alice, cluster=cluster, kind="command", name="never", gpus_per_node=1)


def test_planner_input_signature_changes_with_a_resource_group(daytime):
    before = planner_input.signature()

    resource_groups.save(daytime, name="development", nodes=list(daytime.nodes.all()), kinds=["evaluation"])

    assert planner_input.signature() != before


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"nodes": []}, "nodes"), ({"kinds": []}, "kinds"), ({"kinds": ["dance"]}, "kinds"),
     ({"hours": [Hours(frozenset(), time(9), time(21))]}, "windows"), ({"name": " "}, "name")],
)  # fmt: skip
def test_resource_group_that_makes_no_sense_is_refused(nodes, changes, field):
    with pytest.raises(resource_groups.Invalid) as refused:
        resource_groups.save(None, **{"name": "x", "nodes": nodes, "kinds": ["training"]} | changes)

    assert refused.value.blamed == field


@pytest.fixture
def hidden():
    """A kind of the platform's own jobs, which nobody submits."""

    class Hidden(JobKind):
        name, label, offered = "hidden", "Hidden", False

    with KINDS.temporarily(Hidden()):
        yield


def test_resource_group_for_kinds_that_nobody_can_submit_is_refused(as_olga, nodes, hidden):
    body = {"name": "mine", "nodes": [node.pk for node in nodes], "kinds": ["hidden"]}

    api = as_olga.post("/api/v1/resource-groups/", body, content_type="application/json")
    form = as_olga.get("/resource-groups/new/").content.decode()

    assert (api.status_code, api.json()["code"]) == (400, "invalid")
    assert "would be idle" in api.json()["detail"]
    assert 'value="hidden"' not in form
    assert not ResourceGroup.objects.exists()


def test_resource_group_that_keeps_machines_for_nobody_is_named(as_olga, alice, cluster, nodes, hidden):
    old = ResourceGroup.objects.create(name="old", kinds=["hidden"])
    old.nodes.set(nodes)

    pages = [as_olga.get(path).content.decode() for path in ("/resource-groups/", "/clusters/")]
    findings = doctor.examine([doctor._groups])
    with pytest.raises(NeverFits, match="old"):
        submit(owner=alice, cluster=cluster, kind="command", name="any", gpus_per_node=1)

    assert all("reserved for kinds that cannot be submitted" in page for page in pages)
    assert [(found.level, "old" in found.text) for found in findings] == [(doctor.WARN, True)]


def test_resource_group_page_creates_changes_and_deletes(as_olga, as_alice, nodes):
    empty = {"windows-TOTAL_FORMS": "2", "windows-INITIAL_FORMS": "0", "windows-0-begins": "", "windows-1-begins": ""}
    sent = {"name": "development", "nodes": [nodes[0].pk], "kinds": ["evaluation", "training"]} | empty
    window = {"windows-0-weekdays": ["0", "1"], "windows-0-begins": "09:00", "windows-0-ends": "21:00"}

    half = as_olga.post("/resource-groups/new/", sent | {"windows-0-begins": "09:00"})
    made = as_olga.post("/resource-groups/new/", sent | window)
    group = ResourceGroup.objects.get()
    listed = as_olga.get("/resource-groups/").content.decode()
    refused = as_alice.post("/resource-groups/new/", sent | {"name": "mine"}).status_code
    as_olga.post(f"/resource-groups/{group.pk}/", sent)
    windows = group.windows.count()
    as_olga.post(f"/resource-groups/{group.pk}/delete/", {"confirm": "another name"})
    assert ResourceGroup.objects.filter(pk=group.pk).exists()
    as_olga.post(f"/resource-groups/{group.pk}/delete/", {"confirm": group.name})

    assert (half.status_code, made.status_code, refused) == (422, 302, 403)
    assert "Mon, Tue 09:00–21:00" in listed
    assert (windows, ResourceGroup.objects.count()) == (0, 0)


def test_resource_group_api_creates_and_changes(api, as_olga, nodes):
    body = {"name": "night", "nodes": [nodes[0].pk], "kinds": ["training"],
            "windows": [{"weekdays": [4], "begins": "22:00", "ends": "06:00"}]}  # fmt: skip
    made = as_olga.post("/api/v1/resource-groups/", body, content_type="application/json").json()
    url = f"/api/v1/resource-groups/{made['id']}/"
    changed = as_olga.patch(url, {"kinds": ["service"]}, content_type="application/json").json()

    assert made["nodes"] == ["node1"]
    assert (changed["kinds"], changed["windows"]) == (["service"], body["windows"])
    assert api.get(url).json()["name"] == "night"
    assert api.patch(url, {"name": "mine"}, format="json").status_code == 403
    assert as_olga.delete(url).status_code == 204


@pytest.fixture
def admin_site(client, olga):
    olga.is_staff = olga.is_superuser = True
    olga.save()
    client.force_login(olga)
    return client


def test_resource_group_admin_creates_changes_and_deletes_by_the_service(admin_site, nodes):
    sent = {"name": "night", "nodes": [nodes[0].pk], "kinds": ["training"],
            "windows-TOTAL_FORMS": "1", "windows-INITIAL_FORMS": "0"}  # fmt: skip
    window = {"windows-0-weekdays": ["4", "5"], "windows-0-begins": "22:00", "windows-0-ends": "06:00"}

    made = admin_site.post("/admin/workers/resourcegroup/add/", sent | window)
    group = ResourceGroup.objects.get()
    first = group.windows.get()
    url = f"/admin/workers/resourcegroup/{group.pk}/"
    pages = [admin_site.get(page).status_code for page in ("/admin/workers/resourcegroup/", f"{url}change/")]
    again = sent | window | {"windows-INITIAL_FORMS": "1", "windows-0-id": first.pk, "windows-0-group": group.pk}
    changed = admin_site.post(f"{url}change/", again | {"name": "weekend", "windows-0-weekdays": ["5"]})
    group.refresh_from_db()

    assert (made.status_code, pages, changed.status_code) == (302, [200, 200], 302)
    assert (first.weekdays, first.begins, first.ends) == ([4, 5], time(22), time(6))
    assert (group.name, group.kinds, [one.weekdays for one in group.windows.all()]) == ("weekend", ["training"], [[5]])
    assert admin_site.post(f"{url}delete/", {"post": "yes"}).status_code == 302
    assert [entry.verb for entry in AuditEntry.objects.filter(verb__startswith="resource_group").order_by("pk")] == [
        "resource_group_made", "resource_group_changed", "resource_group_deleted",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"nodes": []}, "This field is required"), ({"kinds": []}, "This field is required"),
     ({"kinds": ["dance"]}, "dance"), ({"kinds": ["hidden"]}, "hidden"), ({"name": "TAKEN"}, "named TAKEN already"),
     ({"windows-0-begins": "09:00", "windows-0-ends": "21:00"}, "This field is required")],
)  # fmt: skip
def test_resource_group_admin_refuses_what_the_page_refuses(admin_site, nodes, hidden, changes, said):
    resource_groups.save(None, name="taken", nodes=nodes, kinds=["training"])
    sent = {"name": "x", "nodes": [nodes[0].pk], "kinds": ["training"],
            "windows-TOTAL_FORMS": "1", "windows-INITIAL_FORMS": "0"}  # fmt: skip

    answer = admin_site.post("/admin/workers/resourcegroup/add/", sent | changes)

    assert answer.status_code == 200
    assert said in answer.content.decode()
    assert ResourceGroup.objects.count() == 1

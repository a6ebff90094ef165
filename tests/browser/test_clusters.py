"""The pages of virtual clusters and resource groups, as administrators and members see them."""

from datetime import time, timedelta

import pytest

from accounts.models import UserGroup
from tests.factories import work
from workers.jobs import more_time
from workers.planning import planner_input
from workers.planning.planner.snapshot import Quota
from workers.resources.clusters import clusters, members, resource_groups


@pytest.fixture
def lab(alice, bob, olga):
    """Four cards; lab has two and borrows a third from vision; Bob waits, Alice asks for more time."""
    node = work.node("node1", gpus=4, cores=32)
    cards = list(node.devices.filter(kind="gpu").order_by("index"))
    made = clusters.save(
        None, name="lab", max_runtime=timedelta(hours=48), jobs_per_user=4, devices={"gpu": Quota(2, True, 3)}
    )
    clusters.save(None, name="vision", devices={"gpu": Quota(2)})
    members.add(made, [alice])
    team = UserGroup.objects.create(name="microscopy", description="People at the microscopes")
    bob.user_groups.add(team)
    members.add_group(made, team)
    jobs = [work.job(alice, made, name=f"cells {n}", state="running", gpus_per_node=1) for n in range(3)]
    for job, card in zip(jobs, cards, strict=False):
        work.hold(job, card)
    args = {"asked": 2, "free": 1}
    work.job(bob, made, name="bobs wish", gpus_per_node=2, wait_code="no_cards", wait_args=args, position=1)
    more_time.request_time(jobs[0], hours=12, reason="Two epochs are missing for the paper.", by=alice)
    hours = [resource_groups.Hours(frozenset(range(5)), time(9), time(21))]
    resource_groups.save(None, name="development", nodes=[node], kinds=["environment", "training"], hours=hours)
    return made


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)])
def test_cluster_pages_fit_and_are_accessible(open_as, olga, lab, accessible, fits, shot, width, dark):
    page = open_as(olga, width=width, dark=dark)
    paths = {
        "clusters": "/clusters/",
        "cluster": f"/clusters/{lab.pk}/",
        "cluster-form": f"/clusters/{lab.pk}/edit/",
        "members": f"/clusters/{lab.pk}/members/",
        "requests": f"/clusters/{lab.pk}/requests/",
        "priorities": f"/clusters/{lab.pk}/priorities/",
        "bounds": f"/clusters/{lab.pk}/bounds/",
        "groups": "/resource-groups/",
    }
    paths["group-form"] = f"/resource-groups/{planner_input.resource_groups()[0].id}/"
    for name, path in paths.items():
        page.goto(path)
        fits(page)
        accessible(page)
        shot(page, f"cluster-{name}-{width}", full=True)


def test_cluster_page_adds_people_in_a_dialog_by_keyboard(open_as, olga, anna, lab, shot):
    page = open_as(olga)
    page.goto(f"/clusters/{lab.pk}/members/")

    page.get_by_role("button", name="Add users").press("Enter")
    shot(page, "cluster-add-people")
    field = page.get_by_role("dialog").get_by_role("combobox", name="Users")
    field.press_sequentially("anna")
    page.get_by_role("option", name="anna").wait_for()
    field.press("ArrowDown")
    field.press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Add", exact=True).press("Enter")

    page.get_by_text("1 user added.").wait_for()
    assert lab.members.filter(pk=anna.pk).exists()


def test_cluster_page_lets_a_member_look_and_request_more_time(open_as, alice, lab, accessible, fits, shot):
    page = open_as(alice)
    job = lab.jobs.get(name="cells 1")

    page.goto(f"/clusters/{lab.pk}/")
    accessible(page)
    shot(page, "cluster-member", full=True)
    borrowed = page.get_by_text("1 borrowed").count()
    page.goto(f"/jobs/{job.pk}/")
    page.get_by_role("link", name="Request more time").click()
    page.get_by_label("Additional hours").fill("6")
    page.get_by_label("Reason").fill("Nearly there.")
    fits(page)
    shot(page, "cluster-more-time")
    page.get_by_role("button", name="Request", exact=True).click()

    page.get_by_text("Requested. You are notified").wait_for()
    assert borrowed
    assert job.time_requests.get().reason == "Nearly there."
    page.goto("/account/")
    accessible(page)
    shot(page, "cluster-settings", full=True)

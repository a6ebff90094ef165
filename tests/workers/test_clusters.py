"""Virtual clusters: what may be promised, who belongs to them, and what one job may use."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils.timezone import now

from accounts.models import UserGroup
from aiplatform.lib.errors import DomainError, NotAllowed
from aiplatform.pages.sources import put_into_clusters
from tests.factories import people, work
from workers.core.models import Job, Node, VirtualCluster
from workers.jobs import buttons, submission
from workers.planning import planner_input
from workers.planning.planner.snapshot import Quota
from workers.resources.clusters import bounds, clusters, members, quotas

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


@pytest.fixture
def four_cards(db):
    return work.node("node1", gpus=4, cores=32)


@pytest.fixture
def lab(four_cards):
    return clusters.save(None, name="lab", devices={"gpu": Quota(3, borrows=True, per_user=2)})


def test_cluster_quota_guarantees_what_is_left_and_no_more(lab):
    left = quotas.detect()

    with pytest.raises(quotas.QuotaTooLarge) as refused:
        clusters.save(None, name="vision", devices={"gpu": Quota(2)})

    assert [(one.kind, one.present, one.guaranteed, one.free) for one in left] == [("gpu", 4, 3, 1), ("cpu", 64, 0, 64)]
    assert refused.value.message == "2 × GPU requested; 1 of 4 are unallocated. Guaranteed so far: lab 3."
    assert refused.value.blamed == "guaranteed_gpu"
    assert not VirtualCluster.objects.filter(name="vision").exists()


def test_cluster_quota_shares_out_cores_like_cards(lab, as_olga, alice):
    page = as_olga.post(
        reverse("workers:cluster-edit", args=[lab.pk]),
        {"name": "lab", "guaranteed_gpu": 3, "guaranteed_cpu": 40, "borrows_cpu": "on", "per_user_cpu": 8},
    )
    api = as_olga.patch(
        f"/api/v1/clusters/{lab.pk}/", {"devices": [{"kind": "cpu", "guaranteed": 65}]}, content_type="application/json"
    )

    assert page.status_code == 302
    assert planner_input.quotas_of(lab)["cpu"] == Quota(40, borrows=True, per_user=8)
    assert api.json()["detail"] == "65 × CPU slots requested; the nodes have 64."
    members.add(lab, [alice])
    too_many = {"owner": alice, "cluster": lab, "kind": "command", "name": "wide", "cpus": 9.0}
    with pytest.raises(DomainError, match=r"Limit per user in cluster lab: 8 CPU slots\."):
        submission.submit(**too_many)


def test_cluster_promised_more_than_is_left_may_still_be_changed(lab, four_cards):
    four_cards.devices.filter(kind="gpu", index__gt=0).delete()

    clusters.save(lab, name="lab", devices={"gpu": Quota(2)})

    assert planner_input.quotas_of(lab)["gpu"] == Quota(2)


def test_planner_input_reads_the_quota_that_was_set(lab):
    lab.jobs_per_user, lab.environments_per_user = 3, 1

    seen = planner_input.cluster_of(lab)

    assert seen.quota("gpu") == Quota(3, borrows=True, per_user=2)
    assert seen.per_user == {"job": 3, "environment": 1}


def test_planner_input_signature_changes_with_a_quota(lab):
    before = planner_input.signature()

    clusters.save(lab, name="lab", devices={"gpu": Quota(3, borrows=False, per_user=2)})

    assert planner_input.signature() != before


def test_cluster_in_use_is_not_deleted_and_says_by_whom(lab, alice, bob):
    running = work.job(alice, lab, name="first", state="running")
    waiting = work.job(bob, lab, name="second")

    with pytest.raises(clusters.StillInUse) as refused:
        clusters.delete(lab)

    used = f"“first” (#{running.pk}) of Alice is running, “second” (#{waiting.pk}) of Bob is queued"
    assert refused.value.message == f"lab is in use: {used}. Wait until they end, or stop them."


def test_cluster_deletion_frees_name_and_cards_and_keeps_past_jobs(lab, alice):
    members.add(lab, [alice])
    ended = work.job(alice, lab, state="succeeded")

    clusters.delete(lab)
    again = clusters.save(None, name="lab", devices={"gpu": Quota(4)})

    assert Job.objects.get(pk=ended.pk).cluster.name == "lab"
    assert list(VirtualCluster.objects.open().filter(name="lab")) == [again]
    assert set(alice.clusters.values_list("name", flat=True)) == {"default"}


def test_cluster_run_time_is_refused_where_it_would_end_running_jobs(lab, alice):
    job = work.job(alice, lab, name="long", state="running")
    job.attempts.update(started_at=now() - timedelta(hours=3))

    with pytest.raises(clusters.StillInUse, match="long"):
        clusters.save(lab, name="lab", max_runtime=timedelta(hours=2))

    assert clusters.save(lab, name="lab", max_runtime=timedelta(hours=4)).max_runtime == timedelta(hours=4)


def test_cluster_members_include_present_and_future_people_of_a_group(lab, alice, bob):
    team = UserGroup.objects.create(name="team")
    alice.user_groups.add(team)

    members.add_group(lab, team)
    bob.user_groups.add(team)
    both = set(lab.members.values_list("username", flat=True))
    alice.user_groups.clear()
    team.users.remove(bob)

    assert both == {"alice", "bob"}
    assert not lab.members.exists()


def test_cluster_member_added_twice_stays_until_both_ways_end(lab, alice):
    team = UserGroup.objects.create(name="team")
    alice.user_groups.add(team)
    members.add(lab, [alice])
    members.add_group(lab, team)

    stays = members.remove(lab, alice)
    still = lab.members.filter(pk=alice.pk).exists()
    team.delete()

    assert (stays, still) == (False, True)
    assert not lab.members.filter(pk=alice.pk).exists()


def test_cluster_group_whose_people_work_there_is_not_taken_out(lab, alice):
    team = UserGroup.objects.create(name="team")
    alice.user_groups.add(team)
    members.add_group(lab, team)
    work.job(alice, lab, name="first", state="running")

    with pytest.raises(members.StillInUse, match=r"Stop these jobs first."):
        members.remove_group(lab, team)


def test_cluster_membership_makes_the_first_current_and_replaces_it(lab, cluster):
    rosa = people.user("rosa")
    members.add(cluster, [rosa])
    members.add(lab, [rosa])

    first = members.current(rosa)
    members.switch(rosa, lab)
    second = members.current(rosa)
    members.remove(lab, rosa)

    assert (first, second, members.current(rosa)) == (cluster, lab, cluster)
    assert rosa.memberships.get().is_current


@pytest.mark.parametrize(
    ("cores", "asked", "given"),
    [(32, (4, 1024), (4, 1024)), (32, (1, 100), (2, 400)), (2, (1, 100), (1, 400)), (2, (0.1, 0), (0.25, 16384))],
)
def test_job_bounds_give_at_least_the_floor_the_machines_have(cluster, cores, asked, given):
    work.node("node1", cores=cores)

    assert bounds.check(cluster, "cpu", *asked) == given


def test_job_bounds_promise_no_more_than_the_machines_have(cluster, as_alice):
    Node.objects.filter(pk=work.node("node1", cores=2).pk).update(memory_mib=24 * 1024)

    page = as_alice.get(f"/clusters/{cluster.pk}/").content.decode()

    assert bounds.check(cluster, "cpu", 2, 0) == (2, 24 * 1024)
    assert "0.25 to 2 CPU cores" in page
    assert "24 GiB" in page
    assert "80 GiB" not in page


def test_job_bounds_refuse_more_than_the_ceiling_with_the_figures(cluster):
    with pytest.raises(bounds.OverLimit) as cores:
        bounds.check(cluster, "gpu", 23, 0)
    with pytest.raises(bounds.OverLimit) as memory:
        bounds.check(cluster, "gpu", 22, 81 * 1024)

    assert cores.value.message == "23 cores requested; a job on GPU in default can use at most 22."
    assert memory.value.message == "81 GiB of memory requested; a job on GPU in default can use at most 80 GiB."


def test_job_bounds_act_at_once_and_for_their_kind_only(cluster):
    bounds.set_bounds(cluster, "gpu", bounds.Bounds(1, 8, 512, 4096))

    assert bounds.check(cluster, "gpu", 8, 0) == (8, 4096)
    assert bounds.check(cluster, "npu", 22, 0) == (22, 81920)


def test_job_bounds_in_the_wrong_order_are_refused(cluster):
    with pytest.raises(bounds.Invalid, match=r"The minimum memory exceeds the maximum."):
        bounds.set_bounds(cluster, "gpu", bounds.Bounds(1, 8, 8192, 4096))


def test_person_page_leaves_cluster_memberships_by_group_alone(lab, cluster, alice):
    team = UserGroup.objects.create(name="team")
    alice.user_groups.add(team)
    members.add_group(lab, team)

    put_into_clusters(alice, [lab.pk, cluster.pk], None)
    kept = alice.memberships.get(cluster=lab).direct
    put_into_clusters(alice, [], None)

    assert kept is False
    assert list(alice.clusters.all()) == [lab]


def test_job_restore_is_refused_when_its_cluster_was_deleted(lab, alice):
    ended = work.job(alice, lab, state="failed")
    clusters.delete(lab)

    restore = next(button for button in buttons.list_buttons(Job.objects.get(pk=ended.pk)) if button.verb == "restore")

    assert restore.why == "The cluster of this job was deleted. Start a new job in another cluster."


def test_c05_cluster_administrator_does_not_unseat_other_administrators(lab, alice, bob, olga):
    members.add(lab, [alice, bob])
    for person in (alice, bob):
        members.set_administrator(lab, person, on=True)

    with pytest.raises(NotAllowed):
        members.remove(lab, bob, by=alice)

    assert lab.memberships.filter(user=bob, administers=True).exists()
    assert members.remove(lab, alice, by=alice)
    assert members.remove(lab, bob, by=olga)

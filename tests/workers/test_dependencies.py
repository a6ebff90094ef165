"""Jobs that follow others: what is refused, when they start, and how they end where they follow in vain."""

import pytest

from aiplatform.lib.errors import Invalid
from tests.conftest import signed_in
from tests.factories import work
from workers.core.models import Dependency, Job
from workers.core.states import Event, IllegalMove
from workers.jobs import actions, following, submission, transitions
from workers.jobs.following import Following
from workers.jobs.forms.following import followed_by
from workers.scheduling.loop import Scheduler

pytestmark = [pytest.mark.django_db, pytest.mark.postgres, pytest.mark.usefixtures("kind")]


@pytest.fixture
def put(alice, cluster):
    work.node(cores=8)

    def one(owner=alice, **about):
        return submission.submit(owner=owner, cluster=cluster, kind="command", name="job", following=Following(**about))

    return one


def state(job):
    return Job.objects.get(pk=job.pk).state


def test_dependency_starts_a_job_once_the_other_completed(put):
    first = put()
    behind = put(after=[first.pk])
    scheduler = Scheduler()
    scheduler.tick()
    before = state(behind)
    transitions.move(first.pk, Event.STARTED, attempt=1)
    transitions.move(first.pk, Event.EXITED_OK, attempt=1)
    scheduler.tick()

    assert (before, state(behind)) == ("queued", "assigned")


def test_dependency_on_an_end_starts_after_a_failure_too(put):
    first = put()
    behind, in_vain = put(after_end=[first.pk]), put(after=[first.pk])
    scheduler = Scheduler()
    scheduler.tick()
    transitions.move(first.pk, Event.STARTED, attempt=1)
    transitions.move(first.pk, Event.EXITED_BAD, attempt=1, reason="user_code")
    scheduler.tick()

    in_vain.refresh_from_db()
    assert state(behind) == "assigned"
    assert (in_vain.state, in_vain.reason) == ("stopped", "dependency")
    assert str(in_vain.message) == (
        f"Job {first.pk} did not complete, so this job was not started. Restore that job, then this one."
    )


def test_dependency_chain_ends_wholly_where_its_first_job_is_stopped(put):
    first = put()
    second = put(after=[first.pk])
    third = put(after=[second.pk])
    actions.stop(first)
    scheduler = Scheduler()
    for _pass in range(2):
        scheduler.tick()

    assert [state(second), state(third)] == ["stopped", "stopped"]


def test_dependency_refuses_unknown_jobs_those_of_others_and_failed_ones_all_at_once(put, alice, bob, cluster):
    cluster.memberships.get_or_create(user=bob)
    his, failed = put(owner=bob), work.job(alice, cluster, state="failed")

    with pytest.raises(Invalid) as refused:
        put(after=[his.pk, failed.pk], after_end=[987_654])

    told = refused.value.sentences
    assert f"You have no job {his.pk}" in told
    assert f"Job {failed.pk} did not complete" in told
    assert "You have no job 987654" in told


def test_dependency_refuses_a_circle(put, alice):
    first = put()
    second = put(after=[first.pk])
    third = put(after=[second.pk])

    for wrong in (first, third):
        with pytest.raises(Invalid, match=r"depends on this job. Remove it."):
            following.change(first, Following(after=[wrong.pk]), by=alice)
    assert list(first.dependencies.all()) == []


def test_dependencies_of_a_waiting_job_are_changed_on_its_page_and_by_the_api(put, as_alice, api, as_bob):
    first, second, behind = put(), put(), put()

    page = as_alice.post(f"/jobs/{behind.pk}/follow/", {"after": f"#{first.pk}, {second.pk}"})
    kept = set(behind.dependencies.values_list("on_id", flat=True))
    answer = api.post(f"/api/v1/jobs/{behind.pk}/follow/", {"after_end": [second.pk]}, format="json")

    assert page.status_code == 302
    assert kept == {first.pk, second.pk}
    assert answer.json()["follows"] == [{"id": second.pk, "state": "queued", "needs": "end"}]
    assert as_bob.get(f"/jobs/{behind.pk}/follow/").status_code == 404
    assert "Depends on jobs" in as_alice.get(f"/jobs/{behind.pk}/").content.decode()


def test_page_of_a_waiting_job_shows_the_progress_of_the_job_it_follows(put, as_alice):
    first = put()
    behind = put(after=[first.pk])
    Scheduler().tick()
    Job.objects.filter(pk=first.pk).update(phase="learning", phase_done=3, phase_total=12, progress=0.25, eta_s=90.0)
    transitions.move(first.pk, Event.STARTED, attempt=1)

    order = as_alice.get(f"/jobs/{behind.pk}/").content.decode().split('id="h-order"')[1].split("</section>")[0]

    for words in ("must complete first", "3 / 12", "25 %", "1 min 30 s left", "started <time"):
        assert words in order


def test_dependencies_of_a_job_that_began_stay(put, alice):
    first, behind = put(), put()
    Scheduler().tick()

    with pytest.raises(IllegalMove, match=r"Only a queued job can have dependencies."):
        following.change(behind, Following(after=[first.pk]), by=alice)


def test_job_page_shows_what_comes_before_and_after(put, olga):
    first = put()
    behind = put(after=[first.pk], retries=2)

    pages = [signed_in(olga).get(f"/jobs/{job.pk}/").content.decode() for job in (first, behind)]

    assert f"(#{behind.pk})" in pages[0]
    assert f"(#{first.pk})" in pages[1]
    assert "0 of 2" in pages[1]


def test_order_panel_is_fetched_again_until_the_jobs_in_it_have_ended(put, as_alice):
    first = put()
    behind = put(after=[first.pk])
    place = f"/jobs/{behind.pk}/panels/order/"

    waiting = as_alice.get(place).content.decode()
    actions.stop(first)
    over = as_alice.get(place).content.decode()

    assert 'hx-trigger="job-moved from:body, every 5s"' in waiting
    assert 'hx-trigger="job-moved from:body"' in over
    assert "Stopped" in over


def test_restored_job_does_not_follow_a_failed_one_any_more(put, alice):
    first = put()
    behind = put(after=[first.pk])
    scheduler = Scheduler()
    actions.stop(first)
    scheduler.tick()
    before = state(behind)

    actions.restore(Job.objects.get(pk=behind.pk), by=alice)
    scheduler.tick()

    assert (before, state(behind)) == ("stopped", "assigned")


def test_dependencies_on_jobs_of_others_stay_when_the_owner_changes_his_own(put, alice, bob, cluster):
    first, build, behind = put(), work.job(bob, cluster), put()
    Dependency.objects.create(job=behind, on=build)
    before = followed_by(behind)

    following.change(behind, Following(after=[first.pk]), by=alice)

    assert before == {"after": "", "after_end": "", "outputs_of": ""}
    assert set(behind.dependencies.values_list("on_id", flat=True)) == {first.pk, build.pk}

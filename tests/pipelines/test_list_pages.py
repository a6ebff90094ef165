"""Lists of all runs and of all approvals."""

import re

import pytest

from inference.pipelines import approvals, loop
from inference.pipelines.models import StepApproval
from tests.factories import people
from tests.pipelines.made import begun, command

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("machine")]


@pytest.fixture
def asking(alice, bob):
    ask = {"kind": "approve", "with": {"people": "alice, bob", "needed": 2, "question": "Ship it?"}}
    return begun(alice, {"ask": ask, "ship": command(when="ask.passed")})


def chip(word):
    return f"</svg>{word}</span>"


def text_of(response):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def test_runs_of_all_pipelines_are_listed_and_can_be_cancelled(as_alice, asking):
    page = as_alice.get("/pipelines/runs/").content.decode()

    assert f'href="/pipelines/runs/{asking.pk}/"' in page
    assert 'data-possible="cancel"' in page
    assert 'data-url="/api/v1/pipeline-runs/0/cancel/"' in page
    assert as_alice.post(f"/api/v1/pipeline-runs/{asking.pk}/cancel/").status_code < 300


def test_run_with_an_open_question_awaits_approval(as_alice, asking):
    for address in ("/pipelines/runs/", f"/pipelines/runs/{asking.pk}/", f"/pipelines/{asking.pipeline_id}/"):
        assert "Awaiting approval" in text_of(as_alice.get(address)), address
    assert chip("Awaiting approval") in as_alice.get("/pipelines/").content.decode()
    as_alice.post(f"/api/v1/pipeline-runs/{asking.pk}/cancel/")
    loop.advance_run(asking.pk)

    assert chip("Awaiting approval") not in as_alice.get("/pipelines/runs/").content.decode()


def test_runs_are_filtered_by_state_and_pipeline(as_alice, asking):
    address = f'href="/pipelines/runs/{asking.pk}/"'

    found = {
        query: address in as_alice.get(f"/pipelines/runs/?{query}").content.decode()
        for query in ("state=running", "state=ok", f"q={asking.pipeline.name}", "q=zzz")
    }

    assert list(found.values()) == [True, False, True, False]


def test_approvals_name_their_approvers_and_count(as_bob, alice, bob, asking):
    approvals.answer(StepApproval.objects.get(), by=alice, answer="passed")

    page = text_of(as_bob.get("/pipelines/approvals/"))

    assert "Ship it?" in page
    assert "Alice, Bob" in page
    assert "1 / 2" in page
    assert "Awaiting approval" in page


def test_approvals_show_the_decision_and_are_filtered_by_it(as_bob, bob, asking):
    approvals.answer(StepApproval.objects.get(), by=bob, answer="refused")
    loop.advance_run(asking.pk)

    page = as_bob.get("/pipelines/approvals/").content.decode()
    found = {
        state: "Ship it?" in text_of(as_bob.get(f"/pipelines/approvals/?state={state}"))
        for state in ("asking", "passed", "refused")
    }

    assert 'class="narrow-only"><span class="chip chip-fail">' in page
    assert "Rejected" in page
    assert found == {"asking": False, "passed": False, "refused": True}


def test_lists_show_nothing_to_others(client, asking):
    client.force_login(people.user("eve"))

    assert "Ship it?" not in text_of(client.get("/pipelines/approvals/"))
    assert f'href="/pipelines/runs/{asking.pk}/"' not in client.get("/pipelines/runs/").content.decode()


def test_lists_cost_the_same_for_many_rows(as_alice, alice, asking, django_assert_max_num_queries):
    for number in range(5):
        begun(alice, {"ask": {"kind": "approve", "with": {"question": f"{number}?"}}}, name=f"q{number}")

    with django_assert_max_num_queries(14):
        as_alice.get("/pipelines/runs/")
    with django_assert_max_num_queries(16):
        as_alice.get("/pipelines/approvals/")

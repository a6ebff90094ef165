"""What every answer carries: ids, privacy, policy; errors as pages and as problems."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import translation
from django.utils.timezone import now

from aiplatform.pages.sources import glance
from tests.factories import work


def test_b09_pages_answer_privately(as_alice):
    for path in ("/", "/api/v1/me/"):
        answer = as_alice.get(path)
        assert answer["Cache-Control"] == "private, no-store"
        assert {"Cookie", "Authorization"} <= set(answer["Vary"].replace(" ", "").split(","))


def test_content_security_policy_allows_our_own_scripts_only(as_alice):
    policy = as_alice.get("/")["Content-Security-Policy"]

    assert "script-src 'self'" in policy
    assert "unsafe" not in policy


def test_pages_have_no_inline_script_or_style(as_olga):
    for path in ("/", "/styleguide/", "/people/", "/account/"):
        page = as_olga.get(path).content.decode()
        assert " style=" not in page
        assert " onclick=" not in page


@pytest.mark.parametrize("path", ["/nope/", "/api/v1/nope/"])
def test_error_page_for_missing_things_has_the_request_id(as_alice, path):
    answer = as_alice.get(path, headers={"X-Request-Id": "abcdef0123456789"})

    assert answer.status_code == 404
    assert answer["X-Request-Id"] == "abcdef0123456789"
    assert "abcdef0123456789" in answer.content.decode()


def test_error_page_says_it_is_our_fault_and_its_id(as_alice, monkeypatch):
    from aiplatform.pages.home import page

    monkeypatch.setattr(page, "list_sections", lambda user, **options: 1 / 0)
    as_alice.raise_request_exception = False

    answer = as_alice.get("/")

    assert answer.status_code == 500
    assert answer["X-Request-Id"] in answer.content.decode()
    assert "ZeroDivision" not in answer.content.decode()


def test_error_page_for_an_expired_form_says_what_to_do(alice):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(alice)

    page = strict.post("/account/", {"nickname": "x"})

    assert page.status_code == 403
    assert "Reload the page" in page.content.decode() or "reload the page" in page.content.decode()


@pytest.mark.parametrize(
    "body",
    [
        "[" * 100_000 + "]" * 100_000,
        '{"nickname": "a\\u0000b"}',
        '{"nickname": "\\ud800"}',
        '{"refresh_s": NaN}',
        '{"refresh_s": 1e999}',
        '{"refresh_s": ' + "9" * 5000 + "}",
        '{"nickname": ["x"]}',
        "[1, 2]",
        "",
        "{",
    ],
    ids=["deep", "nul", "surrogate", "nan", "infinite", "long", "list", "array", "empty", "cut"],
)
def test_j05_api_takes_odd_json_for_a_mistake_of_the_request(as_alice, body):
    answer = as_alice.generic("PATCH", "/api/v1/me/", body, content_type="application/json")

    if body:
        assert answer.status_code == 400
        assert answer["Content-Type"] == "application/problem+json"
        assert json.loads(answer.content)["detail"]
    else:
        assert answer.status_code in {200, 400}


@pytest.mark.parametrize("query", ["limit=1000000000", "limit=-1", "limit=x", "cursor=zzz", "q=%00", "limit=1&limit=2"])
def test_j07_api_lists_are_bounded(as_olga, query):
    answer = as_olga.get(f"/api/v1/users/?{query}")

    assert answer.status_code in {200, 400, 404}
    assert answer.status_code != 200 or len(answer.json()["results"]) <= 200


def test_api_lists_take_q_and_search_for_the_same(as_olga, alice, bob):
    found = [as_olga.get(f"/api/v1/users/?{name}=ali").json()["results"] for name in ("q", "search")]
    clusters = [as_olga.get(f"/api/v1/clusters/?{name}=nothing-of-this-name") for name in ("q", "search")]

    assert [[row["username"] for row in rows] for rows in found] == [["alice"], ["alice"]]
    assert [answer.status_code for answer in clusters] == [200, 200]
    assert as_olga.get("/api/v1/users/?q=ali&search=bob").status_code == 400


def test_api_lists_refuse_a_limit_beyond_a_page(as_olga):
    answer = as_olga.get("/api/v1/users/?limit=1000")

    assert (answer.status_code, answer.json()["detail"]) == (
        400,
        "limit must be from 1 to 200. Use the address in “next” for the remaining rows.",
    )
    assert as_olga.get("/api/v1/users/?limit=200").status_code == 200


@pytest.mark.parametrize("pk", ["1" + "0" * 30, "0", "-1", "x"])
def test_pages_with_odd_ids_are_not_there(as_olga, pk):
    assert as_olga.get(f"/api/v1/users/{pk}/").status_code == 404
    assert as_olga.get(f"/people/{pk}/").status_code == 404


def test_search_takes_odd_words(as_olga):
    for words in ("", "%", "x" * 10_000, "'; drop table", "<script>"):
        assert as_olga.get("/search/", {"q": words}).status_code == 200
    assert as_olga.get("/search/", {"q": "\x00"}).status_code == 400


def test_pages_count_cpu_slots_where_there_are_no_cards_and_say_what_they_are(as_olga, as_alice, alice, cluster):
    node = work.node("n1", cores=4)
    job = work.job(alice, cluster, state="running", cpus=3.0)
    work.hold(job, node.devices.get(kind="cpu"), share=24)
    job.attempts.update(assigned_at=now() - timedelta(hours=2))

    legend = "A job uses one CPU slot per requested core. 4 cores are offered as 8 slots,"
    overview = as_alice.get("/").content.decode()
    pages = [as_olga.get(path).content.decode() for path in ("/cluster/", "/clusters/")]
    use = as_alice.get(f"/clusters/{cluster.pk}/").content.decode()
    usage = as_alice.get("/usage/").content.decode()

    machine = as_alice.get(f"/cluster/nodes/{node.pk}/").content.decode()
    form = as_olga.get(f"/clusters/{cluster.pk}/edit/").content.decode()
    assert [legend in page for page in (overview, *pages, use, machine, form)] == [True] * 6
    assert "Free CPU slots" in overview
    assert "Free GPUs" not in overview
    assert '<span class="big">5 <span class="muted">/ 8</span>' in overview
    for page in pages:
        assert "CPU slots in use" in page
        assert "GPUs in use" not in page
        assert '<td class="num">3</td>' in page
    assert '<th scope="col" class="num">CPU slots</th>' in use
    assert '<th scope="col" class="num">Cards</th>' not in use
    assert '<td class="num">3</td>' in use
    assert "Core hours" in usage
    assert "GPU hours" not in usage


def test_top_bar_counts_cpu_slots_where_there_are_no_cards_and_says_what_they_are(alice):
    node = work.node(cores=2)

    said = glance(alice)
    with translation.override("zh-hans"):
        chinese = glance(alice)
    node.devices.update(capacity=16)
    as_many = glance(alice)

    assert said.free_words == "4 of 4 CPU slots free"
    assert said.sentence == (
        "4 of 4 CPU slots free; this cluster has no GPUs. A job uses one CPU slot per requested core. "
        "2 cores are offered as 4 slots, because few jobs keep a core busy all the time."
    )
    assert chinese.free_words == "4 个 CPU 槽位中 4 个空闲"
    assert "2 个核提供 4 个槽位" in chinese.sentence
    assert as_many.sentence.endswith("Slots offered for 2 cores: 2.")


def test_top_bar_and_overview_say_that_no_machine_has_joined_and_lead_on_who_may_add_one(as_alice, as_olga):
    alice, olga = (client.get("/").content.decode() for client in (as_alice, as_olga))

    for page in (alice, olga):
        assert "no nodes yet" in page
        assert page.count("No node has joined yet. Jobs are queued until the first one joins.") > 1
        assert "0 / 0" not in page
    join = 'href="/cluster/join/"'
    assert (olga.count(join), alice.count(join)) == (3, 0)


def test_top_bar_says_that_no_machine_is_up_rather_than_that_none_is_free(alice):
    work.node(cores=2, state="lost")

    assert (glance(alice).free_words, glance(alice).lacks_machines) == ("no node available", False)


def test_user_language_follows_the_browser_of_the_last_sign_in(alice, client):
    form = {"username": "alice", "password": "correct horse"}
    client.post("/login/", form, headers={"accept-language": "zh-CN"})

    alice.refresh_from_db()
    assert (alice.heard_language, alice.speaks) == ("zh-hans", "zh-hans")
    alice.language = "en"
    assert alice.speaks == "en"

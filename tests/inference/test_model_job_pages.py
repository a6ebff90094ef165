"""What all kinds of jobs on a model version have in common: pages, API, facts."""

import pytest
from django.urls import reverse
from rest_framework.test import APIClient

from inference.evaluation import evaluations
from tests.factories import models as factory
from tests.inference import converted, judged, predicted
from tests.inference.running import set_state
from workers.core import kinds

pytestmark = pytest.mark.django_db
NAMES = ("evaluation", "conversion", "prediction")


@pytest.fixture
def rows(alice, tmp_path):
    model = factory.model_version(alice, tmp_path)
    data = judged.dataset_version(alice, tmp_path / "data")
    return {
        "evaluation": evaluations.submit(user=alice, model_version=model, version=data, split="test"),
        "conversion": converted.submitted(alice, model, data),
        "prediction": predicted.submitted(alice, model, data),
    }


@pytest.mark.parametrize("name", NAMES)
def test_refused_stop_is_a_message_on_the_page_of_the_job(as_alice, rows, name):
    set_state(rows[name].job, "running")
    stop = reverse(f"inference:{name}-stop", args=[rows[name].pk])

    accepted = as_alice.post(stop, follow=True)
    refused = as_alice.post(stop, follow=True)

    page = reverse(f"inference:{name}-detail", args=[rows[name].pk])
    assert accepted.redirect_chain == refused.redirect_chain == [(page, 302)]
    assert [str(message) for message in accepted.context["messages"]] == []
    assert [str(message) for message in refused.context["messages"]] == ["The job is already stopping."]


@pytest.mark.parametrize("name", NAMES)
def test_page_of_a_job_is_read_only_and_htmx_reloads_it_once_the_job_is_over(as_alice, rows, name):
    page = reverse(f"inference:{name}-detail", args=[rows[name].pk])

    sent = as_alice.post(page)
    live = as_alice.get(page, headers={"HX-Request": "true"})
    set_state(rows[name].job, "failed")
    over = as_alice.get(page, headers={"HX-Request": "true"})

    assert sent.status_code == 405
    assert "HX-Refresh" not in live
    assert "<html" not in live.content.decode()
    assert over["HX-Refresh"] == "true"


@pytest.mark.parametrize("name", NAMES)
def test_preview_of_the_start_names_the_first_invalid_field(as_alice, rows, name):
    sent = {"gpus_per_node": "0", "cpus": "1", "memory_gib": "much"}

    panel = as_alice.post(reverse(f"inference:{name}-fit"), sent).content.decode()

    assert "Maximum memory: Enter a number." in panel


@pytest.mark.parametrize("name", NAMES)
def test_list_filters_by_owner_and_ignores_an_unknown_state_on_the_page_alone(as_alice, rows, olga, name):
    operator = APIClient()
    operator.force_authenticate(olga)
    route = f"/api/v1/{name}s/"

    everything = operator.get(route).json()["results"]
    own = operator.get(route, {"mine": "1"}).json()["results"]
    unknown = operator.get(route, {"state": "nonsense"})
    page = as_alice.get(reverse(f"inference:{name}-list"), {"state": "nonsense"})

    assert [row["id"] for row in everything] == [rows[name].pk]
    assert own == []
    assert (unknown.status_code, unknown.json()["code"]) == (400, "invalid")
    assert rows[name].job.name in page.content.decode()


@pytest.mark.parametrize("name", NAMES)
def test_kind_finds_page_and_facts_of_a_job(rows, name):
    row = rows[name]

    facts = {str(fact.label): fact.value for fact in kinds.facts_of(row.job)}

    assert facts["Model"] == "cells v1"
    assert "colours_detection v1" in facts.values()
    assert kinds.url_of(row.job) == reverse(f"inference:{name}-detail", args=[row.pk])

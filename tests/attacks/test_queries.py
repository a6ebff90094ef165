"""What a list does not know, it refuses by name."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from tests.attacks.described import lists
from tests.cases import case_table


@pytest.fixture
def as_root(olga):
    client = APIClient()
    client.force_authenticate(olga)
    return client


@pytest.mark.parametrize("query", ["owner__password__startswith=pbkdf2", "ordering=owner__password", "%00=1"])
def test_b04_lists_take_no_filter_they_do_not_know(as_root, query):
    wrong = {
        path: answer.status_code for path in lists() if (answer := as_root.get(f"{path}?{query}")).status_code != 400
    }

    assert wrong == {}
    assert len(lists()) > 12


def test_b04_lists_refusal_names_the_known_filters(api, cluster):
    answer = api.get("/api/v1/datasets/?owner__password__startswith=pbkdf2")

    assert answer.json()["code"] == "invalid"
    assert "search, name, visibility, annotated, ordering, limit, cursor" in answer.json()["detail"]


def test_b04_actions_take_no_unknown_filter_either(api, cluster):
    assert api.post("/api/v1/datasets/?owner=2", {"name": "streets"}, format="json").status_code == 400


@pytest.mark.parametrize("query", ["search=a&search=b", "search=a%00b", "visibility=everybody", "limit=1&limit=2"])
def test_j07_lists_refuse_values_that_mean_nothing(api, cluster, query):
    assert api.get(f"/api/v1/datasets/?{query}").status_code == 400


def test_api_parameters_that_are_read_are_all_described(as_root):
    schema = as_root.get("/api/schema/?format=json").json()

    described = {p["name"] for p in schema["paths"]["/api/v1/training/jobs/{id}/log/"]["get"]["parameters"]}
    assert {"offset", "limit", "attempt", "tail"} <= described
    listed = {p["name"] for p in schema["paths"]["/api/v1/services/"]["get"]["parameters"]}
    assert "search" in listed


@case_table("path", ["/api/v1/datasets/{}/versions/", "/datasets/{}/", "/training/{}/", "/api/v1/models/{}/"])
@case_table("number", ["9" * 19, "9" * 30, "9" * 5000])
def test_routes_with_an_id_no_row_can_have_are_404(as_olga, path, number):
    assert as_olga.get(path.format(number)).status_code == 404

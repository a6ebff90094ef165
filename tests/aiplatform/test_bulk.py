"""Actions on the selected rows of lists: who gets them, for which rows, and that their addresses exist."""

from __future__ import annotations

import re

import pytest
from django.urls import resolve

from aiplatform.objects.bulk import BulkAction
from datasets.views.datasets import BULK as DATASET_ACTIONS
from inference.registry.views import ModelPages
from tests.factories import datasets, training
from training.runs.views import BULK as TRAINING_ACTIONS

LISTS = [
    "/training/", "/tasks/", "/datasets/", "/models/", "/evaluations/", "/predictions/", "/conversions/", "/videos/",
    "/services/", "/commands/", "/environments/", "/studies/", "/reports/", "/templates/", "/images/", "/pipelines/",
]  # fmt: skip


def possible(page: str) -> list[list[str]]:
    """Codes of the actions of each selectable row."""
    return [found.split() for found in re.findall(r'data-possible="([^"]*)"', page)]


@pytest.mark.parametrize("path", LISTS)
def test_addresses_of_actions_exist(as_olga, path):
    page = as_olga.get(path).content.decode()
    urls = re.findall(r'data-bulk-code="\w+" data-method="(\w+)" data-url="([^"]+)"', page)

    assert urls
    for _method, url in urls:
        resolve(url)


def test_rows_name_the_actions_that_are_possible(as_alice, alice):
    running = training.training(alice, name="running", state="running")
    training.training(alice, name="completed", state="succeeded", data=running.version)

    page = as_alice.get("/training/").content.decode()

    assert sorted(possible(page)) == [["compare"], ["compare", "stop"]]


def test_objects_of_others_have_no_box(as_bob, as_olga, alice):
    shared = datasets.dataset(alice, "shared")
    shared.visibility = "public"
    shared.save()

    assert possible(as_bob.get("/datasets/").content.decode()) == []
    assert possible(as_olga.get("/datasets/").content.decode()) == [["delete"]]


def test_roles_without_the_permission_get_no_action(as_anna):
    page = as_anna.get("/datasets/").content.decode()

    assert "data-bulk-code" not in page


def test_actions_that_end_or_delete_something_ask_first():
    actions = [*DATASET_ACTIONS, *TRAINING_ACTIONS, *ModelPages.table.bulk]

    assert {action.code: action.is_danger for action in actions} == {"delete": True, "compare": False, "stop": True}


def test_condition_of_an_action_nests_what_the_row_and_the_user_decide():
    action = BulkAction("stop", "Stop", "stop", "/api/v1/jobs/0/stop/", when="not row.is_final", owned="row.mine")

    assert action.condition() == "{% if row.mine %}{% if not row.is_final %}stop {% endif %}{% endif %}"

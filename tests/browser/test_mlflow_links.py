"""Links that MLflow's clients print lead to the run, also through the sign-in page."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from playwright.sync_api import expect

from tests.conftest import signed_in
from tests.factories import people, training


@pytest.fixture
def run(alice):
    return training.training(alice, name="digits", state="running").job.run


def test_link_of_mlflow_leads_to_the_run(open_as, alice, run, accessible):
    page = open_as(alice)

    page.goto(f"/api/mlflow/#/experiments/0/runs/{run.uid}")
    expect(page).to_have_url(re.compile(rf"/experiments/runs/{run.pk}/$"))
    page.goto("/api/mlflow/")
    expect(page.get_by_role("link", name="Open experiments")).to_be_visible()
    accessible(page)


def test_link_of_mlflow_shows_nobody_anothers_run(run):
    address = f"/experiments/runs/by-id/{run.uid}/"

    assert signed_in(people.user("mallory")).get(address).status_code == 404
    assert Client().get(address)["Location"].endswith(f"next={address}")

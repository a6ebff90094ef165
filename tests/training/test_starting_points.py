"""The menu "Start from" of the forms of jobs: parameter sets, templates, copies of one's own jobs."""

from __future__ import annotations

import pytest

from tests.factories import training as factory
from training.job_templates import services
from training.job_templates.services import Content
from training.runs import parameter_sets, previews
from training.runs.drafts import TrainingRequest


def menu(client, path: str = "/training/new/") -> dict[str, list[tuple[str, str]]]:
    """Labels and addresses of the rows by source."""
    groups = client.get(path).context["starts"]
    return {group.source.name: [(point.label, point.url) for point in group.points] for group in groups}


def template(user, name: str, kind: str = "training", **fields):
    content = Content(request={"name": name} | ({} if kind == "environment" else {"command": "true"}))
    return services.create(user=user, kind=kind, name=name, description="", content=content, **fields)


@pytest.fixture
def gentle(alice):
    return parameter_sets.save(user=alice, name="gentle", preset="detect", params={"lr": 0.005})


def test_training_form_offers_sets_templates_and_copies(as_alice, alice, machine, gentle):
    training = factory.training(alice, name="blood")
    nightly = template(alice, "nightly", visibility="private")
    template(alice, "report", kind="command", visibility="private")

    assert menu(as_alice) == {
        "parameter_sets": [("gentle v1", f"/training/new/?set={gentle.pk}")],
        "templates": [("nightly", f"/templates/{nightly.pk}/use/")],
        "copies": [("blood", f"/training/new/?clone={training.pk}")],
    }


def test_rows_of_the_menu_lead_to_pages(as_alice, alice, machine, gentle):
    factory.training(alice, name="blood")
    template(alice, "nightly", visibility="private")

    for rows in menu(as_alice).values():
        for _label, url in rows:
            assert as_alice.get(url).status_code == 200, url


def test_private_starting_points_of_others_are_not_offered(as_bob, alice, bob, machine, gentle):
    factory.training(alice)
    template(alice, "nightly", visibility="private")
    template(alice, "shared", visibility="public")

    assert [label for label, _url in menu(as_bob)["templates"]] == ["shared"]
    assert set(menu(as_bob)) == {"templates"}


def test_previews_are_no_starting_points(as_alice, alice, machine, cells):
    factory.training(alice, name="blood", data=cells)
    previews.preview(user=alice, request=TrainingRequest(version=cells, preset="detect", gpus_per_node=0, cpus=1.0))

    assert [label for label, _url in menu(as_alice)["copies"]] == ["blood"]


@pytest.mark.parametrize("path", ["/commands/new/", "/environments/new/"])
def test_other_forms_offer_their_own_kind(as_alice, alice, machine, gentle, path):
    factory.training(alice)
    template(alice, "nightly", visibility="private")
    kind = "command" if "commands" in path else "environment"
    template(alice, "tools", kind=kind, visibility="private")

    assert [label for label, _url in menu(as_alice, path)["templates"]] == ["tools"]
    assert set(menu(as_alice, path)) == {"templates"}
    assert f"/expert/?kind={kind}" in as_alice.get(path).content.decode()


def test_menu_takes_a_query_per_source(as_alice, alice, machine, cells, django_assert_max_num_queries):
    for number in range(5):
        parameter_sets.save(user=alice, name=f"set {number}", preset="detect", params={"lr": 0.01})
        factory.training(alice, name=f"run {number}", data=cells)
    as_alice.get("/training/new/")

    with django_assert_max_num_queries(30):
        as_alice.get("/training/new/")

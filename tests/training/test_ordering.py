"""Lists in the order that people and scripts ask for: only named words, the same on pages and in the API."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.test import RequestFactory

from aiplatform.lib.ordering import ListPage, Ordering
from inference.evaluation.filters import EvaluationFilters
from inference.registry.filters import ModelFilters
from inference.serving.filters import ServiceFilters
from tests.cases import case_table
from tests.factories import training as trainings
from training.runs.filters import ParameterSetFilters, TrainingFilters
from training.runs.models import TrainingJob
from workers.jobs.orders import ORDERING as JOBS

ORDERING, PARAMETER_SETS = TrainingFilters.orders, ParameterSetFilters.orders


@pytest.fixture
def five(alice, machine, cells):
    """Trainings b, A, c, B2 and d, of which two have the same figure and one has none."""
    made = []
    for name, figure in (("b", 0.5), ("A", 0.9), ("c", None), ("B2", 0.5), ("d", 0.1)):
        training = trainings.training(alice, data=cells, name=name)
        TrainingJob.objects.filter(pk=training.pk).update(metrics={} if figure is None else {"val/ap50": figure})
        made.append(training.pk)
    return made


def walked(word: str, size: int = 2) -> list[str]:
    """Names of all pages of that order, and back again to the first."""

    def read(address: str) -> ListPage:
        return ORDERING.page(RequestFactory().get(address), TrainingJob.objects.for_list(), size=size)

    found, address, pages = [], f"/training/?ordering={word}", 0
    while address:
        page = read(address)
        found += [training.job.name for training in page]
        address, pages = page.next_url and f"/training/{page.next_url}", pages + 1
        last = page
    for _ in range(pages - 1):
        last = ORDERING.page(
            RequestFactory().get(f"/training/{last.previous_url}"), TrainingJob.objects.for_list(), size=size
        )
    assert [training.job.name for training in last] == found[:size]
    return found


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("name", ["A", "b", "B2", "c", "d"]),
        ("-name", ["d", "c", "B2", "b", "A"]),
        ("-figure", ["A", "B2", "b", "d", "c"]),
        ("figure", ["c", "d", "b", "B2", "A"]),
        ("-created", ["d", "B2", "c", "A", "b"]),
        ("created", ["b", "A", "c", "B2", "d"]),
    ],
)
def test_ordering_is_kept_over_pages_forth_and_back_whatever_the_case_and_for_missing_figures(five, word, names):
    assert walked(word) == names


def test_ordering_of_an_unknown_word_is_the_usual_one_on_a_page_and_refused_by_the_api(five, as_alice, api):
    page = as_alice.get("/training/?ordering=owner__password")
    answer = api.get("/api/v1/training/jobs/?ordering=job__owner__password")

    assert page.status_code == 200
    assert [row.job.name for row in page.context["page"]] == ["d", "B2", "c", "A", "b"]
    assert answer.status_code == 400
    assert "-figure" in answer.json()["detail"]


@pytest.mark.parametrize("word", ["name", "-name", "figure", "-figure", "cards", "created"])
def test_ordering_is_the_same_on_page_and_in_api(five, as_alice, api, word):
    page = [row.pk for row in as_alice.get(f"/training/?ordering={word}").context["page"]]
    found, address = [], f"/api/v1/training/jobs/?limit=2&ordering={word}"
    while address:
        body = api.get(address).json()
        found += [row["id"] for row in body["results"]]
        address = body["next"]

    assert found == page
    assert len(found) == 5


@pytest.mark.parametrize(
    ("path", "orders"),
    [
        ("training/jobs", ORDERING),
        ("models", ModelFilters.orders),
        ("evaluations", EvaluationFilters.orders),
        ("services", ServiceFilters.orders),
        ("jobs", JOBS),
    ],
)
def test_every_word_of_every_list_reads_it_on_page_and_in_api(five, olga, as_olga, api, path, orders):
    api.force_authenticate(olga)
    page = {"training/jobs": "training", "jobs": "tasks"}.get(path, path)

    for word in orders.words:
        assert as_olga.get(f"/{page}/?ordering={word}").status_code == 200, word
        assert api.get(f"/api/v1/{path}/?ordering={word}&limit=1").status_code == 200, word


def test_head_of_a_sorted_column_says_so_and_leads_to_the_other_way(five, as_alice):
    html = as_alice.get("/training/?ordering=name&state=waiting").content.decode()

    assert '<th scope="col" aria-sort="ascending"><a href="?state=waiting&amp;ordering=-name" data-order="name"' in html
    assert html.count("aria-sort") == 1
    assert 'href="?state=waiting&amp;ordering=-figure"' in html  # numbers begin with the largest
    assert set(re.findall('data-order="([^"]+)"', html)) == set(ORDERING.columns)


def test_ordering_refuses_to_be_made_with_an_unknown_default():
    with pytest.raises(ValueError, match="none of name"):
        Ordering("-created", name="name")


def test_parameter_sets_sort_by_every_word(as_alice):
    assert {as_alice.get(f"/training/params/?ordering={word}").status_code for word in PARAMETER_SETS.words} == {200}


@case_table("path", ["/training/", "/models/", "/services/", "/evaluations/", "/queue/", "/usage/",
                                  "/tasks/", "/people/audit/", "/training/params/", "/training/presets/",
                                  "/datasets/", "/people/", "/people/groups/", "/alarms/",
                                  "/annotation/"])  # fmt: skip
def test_list_answers_htmx_with_its_region_alone_and_keeps_the_filter_without_scripts(as_olga, path):
    whole = as_olga.get(path).content.decode()
    part = as_olga.get(path, headers={"HX-Request": "true"}).content.decode()

    assert "data-filters=" in whole
    assert "</html>" not in part
    assert "<noscript><button" in whole
    assert part.strip() in whole or "csrf" in part  # the same rows; a form inside has its own token


def test_choices_that_narrow_a_page_need_no_button_to_be_sent():
    """A button that only sends a choice stands in `noscript`."""
    button = r'<button(?![^>]*type="button")[^>]*>(?:{% icon "\w+" %})?'
    sending = re.compile(button + r'{% translate "(?:Apply|Filter|Find|Show)" %}</button>')
    templates = Path(settings.BASE_DIR) / "templates"
    beside = [
        path.name
        for path in templates.rglob("*.html")
        if sending.search(re.sub(r"<noscript>.*?</noscript>", "", path.read_text()))
    ]

    assert beside == []


def test_no_filter_bar_is_made_by_hand():
    """All of them act at once, the same way: they are made by the tag, and by nothing else."""
    templates = Path(settings.BASE_DIR) / "templates"
    made = {str(path.relative_to(templates)) for path in templates.rglob("*.html") if "filter-bar" in path.read_text()}

    assert made == {"components/filter_bar.html", "styleguide.html"} & made
    assert "components/filter_bar.html" in made

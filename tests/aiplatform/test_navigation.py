"""Navigation: entries by role, tabs, names that agree everywhere, URLs that keep answering."""

from __future__ import annotations

import re
from collections import Counter
from html import unescape
from pathlib import Path

import pytest
from django.conf import settings
from django.urls import NoReverseMatch, reverse
from django.utils import translation
from drf_spectacular.generators import SchemaGenerator

from accounts.access.permissions import PRESET_ROLES, SYSTEM_ADMIN, USER, Action
from aiplatform.client.nouns import NOUNS
from aiplatform.frame import api_tags, navigation
from aiplatform.templatetags.ui import icon_names
from workers.core.kinds import KINDS

CRUMB = re.compile(r"""<a href="\{% url '([\w:-]+)' %\}">\{% translate "([^"]+)"(?: context "\w+")? %\}</a>""")
FORMER = [
    "/", "/files/", "/datasets/", "/annotation/", "/training/", "/studies/", "/environments/", "/experiments/",
    "/commands/", "/reports/", "/training/visualisation/", "/templates/", "/models/", "/evaluations/", "/conversions/",
    "/predictions/", "/videos/", "/services/", "/edge/", "/push/", "/pipelines/", "/queue/", "/cluster/", "/usage/",
    "/ports/", "/images/", "/clusters/", "/tasks/", "/alarms/", "/people/console/", "/people/", "/people/groups/",
    "/people/roles/", "/people/audit/", "/training/presets/", "/training/params/", "/evaluations/sets/",
    "/people/registration/", "/alarms/rules/", "/alarms/addresses/", "/resource-groups/", "/cluster/join/", "/expert/",
]  # fmt: skip
ADDED = ["/pipelines/runs/", "/pipelines/approvals/"]

#: Noun of `aip` → URL of the list that it reads.
VERBS = {
    "datasets": "/datasets/", "files": "/files/", "annotation": "/annotation/", "train": "/training/",
    "study": "/studies/", "runs": "/experiments/", "report": "/reports/", "params": "/training/params/",
    "run": "/commands/", "env": "/environments/", "templates": "/templates/", "images": "/images/", "ports": "/ports/",
    "models": "/models/", "evaluate": "/evaluations/", "serve": "/services/", "predict": "/predictions/",
    "video": "/videos/", "edge": "/edge/", "push": "/push/", "pipeline": "/pipelines/", "queue": "/queue/",
    "nodes": "/cluster/", "resource-groups": "/resource-groups/", "usage": "/usage/", "clusters": "/clusters/",
    "people": "/people/", "groups": "/people/groups/", "roles": "/people/roles/", "audit": "/people/audit/",
    "alarms": "/alarms/",
}  # fmt: skip


def label_of(path: str) -> str:
    return next(str(tab.label) for tab in navigation.all_tabs() if tab.path == path)


def groups_of(role: str, path: str = "/") -> list[dict]:
    return navigation.navigation(path, PRESET_ROLES[role])


def entries_of(role: str) -> list[str]:
    return [entry["key"] for group in groups_of(role) for entry in group["entries"]]


def strip(page: str) -> list[str]:
    found = re.search(r'<nav class="tabs" aria-label="[^"]+">(.*?)</nav>', page, re.DOTALL)
    return re.findall(r'<a href="([^"]+)"', found[1]) if found else []


def test_navigation_of_a_researcher_has_eleven_entries():
    assert entries_of(USER) == [
        "home", "datasets", "annotation", "training", "experiments", "workspaces", "models", "endpoints", "devices",
        "pipelines", "jobs",
    ]  # fmt: skip


def test_navigation_of_an_annotator_has_two_entries():
    assert entries_of("Annotator") == ["home", "annotation"]


def test_navigation_of_an_operator_starts_with_the_cluster_and_folds_the_product():
    groups = groups_of(SYSTEM_ADMIN)

    assert [(group["key"], group["folded"]) for group in groups] == [
        ("home", False), ("cluster", False), ("admin", False), ("data", True), ("build", True), ("deploy", True),
    ]  # fmt: skip
    assert [e["key"] for g in groups if not g["folded"] for e in g["entries"]] == [
        "home", "jobs", "nodes", "usage", "users", "alerts",
    ]  # fmt: skip


def test_nodes_and_usage_are_tabs_of_the_jobs_for_readers_who_do_not_manage_the_cluster():
    jobs = next(e for g in groups_of(USER, "/usage/") for e in g["entries"] if e["key"] == "jobs")

    assert [tab["url"] for tab in jobs["tabs"]] == ["/queue/", "/cluster/", "/usage/"]
    assert jobs["current"]
    assert [tab["url"] for tab in jobs["tabs"] if tab["current"]] == ["/usage/"]


def test_an_entry_links_the_first_tab_that_the_reader_may_see():
    audit_only = navigation.navigation("/", {Action.AUDIT_VIEW})

    assert [(e["key"], e["url"]) for g in audit_only for e in g["entries"]] == [("users", "/people/audit/")]


@pytest.mark.parametrize(
    ("path", "entry"),
    [
        ("/training/7/log/", "training"), ("/training/compare/", "experiments"), ("/studies/3/", "training"),
        ("/people/roles/2/", "users"), ("/clusters/1/members/", "usage"), ("/expert/", "workspaces"),
        ("/evaluations/4/", "models"), ("/videos/4/", "endpoints"), ("/push/", "devices"), ("/arrays/2/", "jobs"),
        ("/account/", None),
    ],
)  # fmt: skip
def test_entry_of_a_page_is_that_of_the_longest_matching_tab(path, entry):
    current = navigation.current_entry(groups_of(SYSTEM_ADMIN, path))

    assert (current and current["key"]) == entry


def test_icons_and_shortcuts_of_entries_are_unique_and_drawn():
    entries = list(navigation.all_entries())

    for values in ([entry.icon for entry in entries], [entry.shortcut for entry in entries]):
        assert [value for value, times in Counter(values).items() if times > 1] == []
    assert {entry.icon for entry in entries} | {tab.icon for tab in navigation.all_tabs() if tab.icon} <= icon_names()


def test_each_tab_belongs_to_an_entry_and_has_an_own_path():
    tabs = navigation.all_tabs()

    assert {tab.entry for tab in tabs} == {entry.key for entry in navigation.all_entries()}
    assert [path for path, times in Counter(tab.path for tab in tabs).items() if times > 1] == []


def test_url_of_each_former_entry_answers(as_olga):
    answers = {path: as_olga.get(path).status_code for path in FORMER}

    assert {path: code for path, code in answers.items() if code != 200} == {"/people/console/": 302}
    assert as_olga.get("/people/console/").url == "/people/"
    assert {tab.path for tab in navigation.all_tabs()} <= {*FORMER, *ADDED}


def test_title_heading_and_crumb_of_a_tab_are_its_name_and_its_strip_is_drawn(as_olga):
    different = {}
    for tab in navigation.all_tabs():
        if tab.path == "/":
            continue  # the home page greets its reader
        page = as_olga.get(tab.path).content.decode()
        crumbs = re.search(r'<nav class="crumbs".*?</nav>', page, re.DOTALL)
        found = (
            re.search(r"<title>(.*?) ·", page, re.DOTALL)[1],
            re.sub(r"<[^>]+>", "", re.search(r"<h1[^>]*>(.*?)</h1>", page, re.DOTALL)[1]),
            re.findall(r"<span>(.*?)</span>", crumbs[0])[-1],
        )
        if {unescape(text).strip() for text in found} != {str(tab.label)}:
            different[tab.path] = found
        siblings = [other.path for other in navigation.all_tabs() if other.entry == tab.entry]
        if strip(page) != (siblings if len(siblings) > 1 else []):
            different[tab.path] = strip(page)

    assert different == {}


def test_crumbs_of_a_tab_name_its_entry_once(as_olga):
    labels = {entry.key: str(entry.label) for entry in navigation.all_entries()}
    wrong = {}
    for tab in navigation.all_tabs():
        if tab.path == "/":
            continue
        crumbs = re.search(r'<nav class="crumbs".*?</nav>', as_olga.get(tab.path).content.decode(), re.DOTALL)[0]
        found = [unescape(text).strip() for text in re.findall(r"<(?:a|span)\b[^>]*>(.*?)</(?:a|span)>", crumbs)]
        if found != list(dict.fromkeys([labels[tab.entry], str(tab.label)])):
            wrong[tab.path] = found

    assert wrong == {}


def test_crumbs_of_all_pages_call_a_list_by_the_name_of_its_tab():
    names = {tab.path: str(tab.label) for tab in navigation.all_tabs()}
    wrong = []
    for path in Path(settings.BASE_DIR, "templates").rglob("*.html"):
        for crumbs in re.findall(r"block crumbs %\}(.*?)\{% endblock", path.read_text(), re.DOTALL):
            for url_name, text in CRUMB.findall(crumbs):
                try:
                    url = reverse(url_name)
                except NoReverseMatch:
                    continue
                if names.get(url, text) != text:
                    wrong.append((path.name, text, names[url]))

    assert wrong == []


def test_tags_of_the_api_are_the_entries_of_the_navigation():
    schema = SchemaGenerator().get_schema(request=None, public=True)
    with translation.override("en"):
        names = {str(entry.label) for entry in navigation.all_entries()} - {"Home"}
    operations = [o for path in schema["paths"].values() for o in path.values() if isinstance(o, dict)]
    known = {resource for resources in api_tags.RESOURCES.values() for resource in resources}
    resources = {path.removeprefix("/api/v1/").split("/")[0] for path in schema["paths"] if path.startswith("/api/v1/")}

    assert {tag for operation in operations for tag in operation["tags"]} == names | {"Account"}
    assert resources - known == set()


def test_help_of_the_command_line_calls_things_by_the_names_of_the_navigation():
    helps = {noun.name: noun.help.casefold() for noun in NOUNS}

    missing = {verb: str(tab) for verb, path in VERBS.items() if (tab := label_of(path)).casefold() not in helps[verb]}
    assert missing == {}


def test_plural_labels_of_job_kinds_are_names_of_tabs():
    labels = {str(tab.label) for tab in navigation.all_tabs()}

    assert {str(kind.plural_label()) for kind in KINDS if kind.list_path()} <= labels


def test_strip_is_drawn_on_the_pages_of_tabs_only(as_alice):
    assert strip(as_alice.get("/training/presets/").content.decode()) == [
        "/training/", "/studies/", "/training/presets/", "/training/params/",
    ]  # fmt: skip
    assert strip(as_alice.get("/training/params/new/").content.decode()) != strip(
        as_alice.get("/training/params/").content.decode()
    )
    assert strip(as_alice.get("/annotation/").content.decode()) == []

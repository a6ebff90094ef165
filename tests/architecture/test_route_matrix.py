"""Every page that needs no id, for everybody: strangers are sent to sign in, people see what their role allows."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import get_resolver

from tests.conftest import signed_in
from tests.factories import people
from tests.plain_routes import action_of, plain_routes
from tests.routes import routes


@pytest.fixture
def cast(alice, anna, olga):
    nobody = people.user("carol", role=None)
    return {"alice": alice, "anna": anna, "olga": olga, "carol": nobody}


def test_b01_plain_routes_answer_each_person_by_their_role(cast):
    wrong, asked = [], 0
    clients = {name: signed_in(user) for name, user in cast.items()}
    for path, pattern in plain_routes().items():
        action = action_of(pattern)
        if action is None:
            continue
        for name, user in cast.items():
            status = clients[name].get(path).status_code
            asked += 1
            expected = {200, 302, 400, 404, 405, 409, 503} if user.can(action) else {403, 405}
            if status not in expected:
                wrong.append(f"{name} GET {path} ({action}): {status}")
        status = Client().get(path).status_code
        if status not in {302, 401, 405}:
            wrong.append(f"stranger GET {path}: {status}")

    assert wrong == []
    assert asked > 40


def test_c08_plain_routes_open_nothing_by_other_methods(cast):
    """OPTIONS, HEAD and DELETE by someone without the right answer no more than GET does."""
    wrong = []
    anna = signed_in(cast["anna"])
    for path, pattern in plain_routes().items():
        action = action_of(pattern)
        if action is None or cast["anna"].can(action):
            continue
        wrong += [
            f"{method} {path}: {status}"
            for method in ("head", "delete", "put", "patch", "post")
            if (status := getattr(anna, method)(path).status_code) not in {403, 405, 415}
        ]

    assert wrong == []


def test_j05_routes_with_numbers_take_nothing_else_for_a_number():
    """A row called by a word reaches the database, which answers with a fault of its own."""
    free = [path for path, _pattern in routes(get_resolver().url_patterns) if "[^/.]+" in path]

    assert {path.split("(")[0] for path in free} <= {"api/v1/^training/presets/"}


def test_icons_in_templates_are_drawn():
    import re

    from aiplatform.templatetags.ui import CHIPS, icon_names
    from tests.architecture.code import ROOT

    used = {icon for _hue, icon, _word in CHIPS.values()}
    for template in (ROOT / "templates").rglob("*.html"):
        used |= set(re.findall(r"{% icon [\"']([\w-]+)[\"']", template.read_text()))
    for script in ROOT.glob("*/static/**/*.js"):
        used |= set(re.findall(r"\bicon\(\"([\w-]+)\"\)", script.read_text()))

    assert used - icon_names() == set()


def test_styles_take_their_colours_from_tokens():
    """Only tokens.css and dark.css name a colour."""
    import re

    from tests.architecture.code import ROOT

    named = re.compile(r"#[0-9a-fA-F]{3,8}\b|\b(?:rgb|hsl)a?\(")
    found = [
        f"{sheet.relative_to(ROOT)}:{n}"
        for sheet in ROOT.glob("*/static/**/*.css")
        if sheet.name not in {"tokens.css", "dark.css"}
        for n, line in enumerate(sheet.read_text().splitlines(), 1)
        if named.search(line.split("url(")[0])
    ]

    assert found == []


def test_template_tags_never_run_over_a_line():
    """Django shows such a tag to the reader as it stands."""
    from tests.architecture.code import ROOT

    broken = []
    for path in sorted((ROOT / "templates").rglob("*.html")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.count("{%") != line.count("%}") or line.count("{{") != line.count("}}"):
                broken.append(f"{path.relative_to(ROOT)}:{number}")

    assert broken == []

"""`manage.py test --changed` chooses the tests that are closest to a change, and says why."""

from __future__ import annotations

import pytest

from aiplatform.cli import gate
from tests import selection


def files_for(*changed: str, **more) -> dict[str, str]:
    selected = selection.select(list(changed), **more)
    reasons = dict(line.strip().split(": ", 1) for line in selected.lines if line.startswith("  "))
    return {file: reasons[file] for file in selected.files}


def test_selection_takes_tests_that_changed_and_tests_that_import_a_changed_module_first():
    chosen = files_for("workers/planning/planner/plan.py", "tests/lib/test_claims.py")

    assert chosen["tests/lib/test_claims.py"] == "changed"
    assert "workers.planning.planner.plan" in chosen["tests/workers/test_plan.py"]


def test_selection_takes_importers_of_a_test_helper():
    chosen = files_for("tests/pipelines/made.py")

    assert chosen
    assert all("imports tests.pipelines.made" in reason or "rule" in reason for reason in chosen.values())


def test_selection_stops_at_a_minute_and_names_what_it_left_out():
    slow = dict.fromkeys(files_for("workers/planning/planner/plan.py"), selection.TIME_S / 2)

    selected = selection.select(["workers/planning/planner/plan.py"], slow)

    assert sum(slow.get(file, 0.0) for file in selected.files) <= selection.TIME_S
    assert any("would take longer than a minute" in line for line in selected.lines)


def test_selection_takes_tests_of_what_is_no_module():
    assert "tests/aiplatform/test_migrations.py" in files_for("workers/migrations/0001_x.py")
    assert list(files_for("aiplatform/docs/glossary.md")) == [
        "tests/architecture/test_docs.py",
        "tests/architecture/test_docs_references.py",
    ]
    assert list(files_for("aiplatform/locale/zh_Hans/LC_MESSAGES/django.po")) == [
        "tests/aiplatform/test_translations.py",
        "tests/aiplatform/test_translations_terms.py",
    ]
    assert "tests/training/test_pages.py" in files_for("templates/training/job_list.html")


def test_selection_runs_the_static_steps_that_read_a_change():
    steps = selection.select(["templates/base.html", "static/app.js", "workers/core/models/job.py"]).steps

    assert steps == ["lint", "templates", "scripts", "imports", "migrations"]


def test_selection_is_everything_where_any_test_may_change():
    selected = selection.select(["pyproject.toml", "workers/planning/planner/plan.py"])

    assert selected.everything
    assert "pyproject.toml changed" in selected.lines[0]


def test_selection_by_a_commit_that_does_not_exist_is_refused(capsys):
    with pytest.raises(SystemExit):
        gate.main(["--changed", "no-such-branch"])

    assert "There is no commit 'no-such-branch'" in capsys.readouterr().err

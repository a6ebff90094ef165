"""What the documents point to is there."""

from __future__ import annotations

import re
import tomllib

from aiplatform import env
from tests.architecture.code import ROOT
from tests.architecture.documents import PRESENT, REPOSITORY, TOP, name
from tests.cases import case_table

PATH = re.compile(r"`((?:[a-z_]+/)+[\w.-]*)`")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@case_table("document", REPOSITORY, ids=name)
def test_documents_links_lead_somewhere(document):
    named = [to for to in LINK.findall(document.read_text()) if "://" not in to and not to.startswith("mailto:")]

    assert [to for to in named if not (document.parent / to).exists()] == []


@case_table("document", PRESENT, ids=name)
def test_documents_name_only_paths_that_exist(document):
    """A path that begins at the top level, as `app/room/file.py` or `app/room/`."""
    named = {path for path in PATH.findall(document.read_text()) if path.split("/")[0] in TOP}

    assert sorted(path for path in named if not (ROOT / path).exists()) == []


def test_doctor_lists_all_settings(capsys, monkeypatch):
    from aiplatform.cli import doctor

    monkeypatch.setattr(doctor, "CHECKS", ())
    doctor.main(["--settings"])

    assert set(re.findall(r"^\W*(AIP_\w+)", capsys.readouterr().out, re.MULTILINE)) >= set(env.documented)


def test_project_file_names_a_licence_that_is_there():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert project["license"] == "Apache-2.0"
    for path in project["license-files"]:
        assert "Apache License" in (ROOT / path).read_text()


def test_changelog_knows_the_version_of_the_project():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    told = re.findall(r"^## \[(.+?)\]", (ROOT / "aiplatform/docs/CHANGELOG.md").read_text(), re.MULTILINE)

    assert told[0] == "Unreleased"
    assert version in told

"""Reports at the command line."""

from __future__ import annotations

import json

import pytest

from aiplatform.client import printing
from tests.factories import reports as factory
from training.experiments.reports.models import Report

pytestmark = pytest.mark.django_db
TEXT = "# Found\n\n```figure\nvalue: best(acc)\n```\n"


@pytest.fixture
def written(tmp_path):
    file = tmp_path / "found.md"
    file.write_text(TEXT)
    return file


def test_terminal_writes_lists_shows_and_exports_a_report(real_aip, alice, written, tmp_path, capfd):
    factory.run(alice, "kestrel", curves={"acc": [0.25, 0.75]})
    file = tmp_path / "found.html"

    codes = [real_aip(alice, "report", "create", "Rates", written, "--visibility", "group")]
    number = str(Report.objects.get().pk)
    codes += [real_aip(alice, "report", "list"), real_aip(alice, "report", "show", "Rates")]
    codes += [real_aip(alice, "report", "export", "Rates", file)]
    printed = capfd.readouterr().out
    refused = real_aip(alice, "report", "export", number, file)
    codes += [real_aip(alice, "report", "export", number, *more) for more in ((file, "--force"), ("-",))]
    html = capfd.readouterr().out
    codes += [real_aip(alice, "report", "show", number, "--json")]

    assert codes == [0] * 7
    assert refused == 2
    assert TEXT in printed
    assert "0.75" in file.read_text()
    assert "kestrel" in html
    assert json.loads(capfd.readouterr().out)["visibility"] == "group"


def test_terminal_says_what_is_wrong_with_a_text(real_aip, alice, tmp_path, capfd):
    file = tmp_path / "wrong.md"
    file.write_text("```figure\nvalu: 1\n```\n")

    codes = [
        real_aip(alice, "report", "create", "Wrong", file),
        real_aip(alice, "report", "create", "Wrong", tmp_path / "missing.md"),
        real_aip(alice, "report", "show", "nothing"),
    ]

    said = capfd.readouterr().err
    assert codes == [2, 2, 5]
    assert "has no field valu" in said
    assert "needs the field value" in said
    assert not Report.objects.exists()


def test_pdf_without_a_browser_says_what_to_install(real_aip, alice, written, monkeypatch, tmp_path, capfd):
    real_aip(alice, "report", "create", "Rates", written)
    monkeypatch.setattr(printing.shutil, "which", lambda name: None)

    code = real_aip(alice, "report", "export", "Rates", tmp_path / "a.pdf", "--pdf")

    assert code == 1
    assert "Install it (apt install chromium" in capfd.readouterr().err
    assert not (tmp_path / "a.pdf").exists()


def test_pdf_that_the_browser_cannot_print_is_said(real_aip, alice, written, monkeypatch, tmp_path, capfd):
    real_aip(alice, "report", "create", "Rates", written)
    monkeypatch.setenv("AIP_CHROMIUM", "/bin/false")

    code = real_aip(alice, "report", "export", "Rates", tmp_path / "a.pdf", "--pdf")

    assert code == 1
    assert "/bin/false could not print the report: no output." in capfd.readouterr().err

"""The Chinese texts are complete, keep their placeholders, and reach pages and scripts."""

from __future__ import annotations

import json
import re
import shutil
from io import StringIO
from pathlib import Path

import polib
import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from django.utils import translation

from aiplatform.lib import messages
from tests.aiplatform.catalogues import DOMAINS, answers, catalogue, sources

PROGRAMS = ("xgettext", "msguniq", "msgmerge", "msgattrib")
PLACES = re.compile(r"%\(\w+\)[.\d]*[sdf]|%%|%[sd](?!\w)|\$*\{[\w.]*\}|</?\w+[^>]*>")
CHINESE = re.compile(r"[\u4e00-\u9fff]")
ROOT = Path(settings.BASE_DIR)
ROOMS = ("aiplatform", "accounts", "workers", "datasets", "annotation", "training", "inference", "templates")


@pytest.mark.parametrize("domain", DOMAINS)
def test_translations_are_complete_and_none_is_a_guess(domain):
    texts = catalogue(domain)

    assert len(texts) > 100
    assert [entry.msgid for entry in texts if not all(answers(entry))] == []
    assert [entry.msgid for entry in texts if entry.fuzzy] == []
    assert [entry.msgid for entry in texts.obsolete_entries()] == []
    assert texts.metadata["Plural-Forms"] == "nplurals=1; plural=0;"


@pytest.mark.parametrize("domain", DOMAINS)
def test_translations_keep_placeholders_and_tags(domain):
    changed = [
        (source, answer)
        for entry in catalogue(domain)
        for source, answer in zip(sources(entry), answers(entry), strict=True)
        if sorted(PLACES.findall(source)) != sorted(PLACES.findall(answer))
    ]

    assert changed == []


@pytest.mark.parametrize("domain", DOMAINS)
def test_translations_keep_edges_and_ends(domain):
    """No space or line break is lost or won, and nobody is shouted at."""
    for entry in catalogue(domain):
        for answer in answers(entry):
            assert answer == answer.strip()
            assert not {"！", "!"} & set(answer)


@pytest.mark.parametrize("domain", DOMAINS)
def test_translations_are_compiled_by_the_product(domain, tmp_path):
    folder = tmp_path / "zh_Hans" / "LC_MESSAGES"
    shutil.copytree(messages.LOCALE / "zh_Hans" / "LC_MESSAGES", folder, ignore=shutil.ignore_patterns("*.mo"))

    messages.compile_all(tmp_path)

    compiled = polib.mofile(str(folder / f"{domain}.mo"))
    assert {entry.msgid for entry in compiled} == {entry.msgid for entry in catalogue(domain) if entry.translated()}


@pytest.mark.skipif(not all(map(shutil.which, PROGRAMS)), reason="needs the gettext programs (apt install gettext)")
def test_translations_miss_no_text_of_the_source(tmp_path, monkeypatch, settings):
    for room in ROOMS:
        shutil.copytree(
            ROOT / room,
            tmp_path / room,
            ignore=lambda folder, names: [
                name
                for name in names
                if not (Path(folder) / name).is_dir() and not name.endswith((".py", ".js", ".html", ".txt", ".po"))
            ],
        )
    locale = tmp_path / "aiplatform" / "locale"
    settings.LOCALE_PATHS = [locale]
    monkeypatch.chdir(tmp_path)

    call_command("makemessages", verbosity=0, stdout=StringIO())

    for domain in DOMAINS:
        now = {(entry.msgctxt, entry.msgid) for entry in catalogue(domain, locale)}
        then = {(entry.msgctxt, entry.msgid) for entry in catalogue(domain)}
        assert now - then == set(), "run `python manage.py makemessages` and translate what is new"
        assert then - now == set(), "run `python manage.py makemessages`: these texts are no longer said"


def test_translations_gather_every_call_of_t_in_our_modules():
    """xgettext reads modules loosely; look for calls it might have overlooked."""
    known = {text for entry in catalogue("djangojs") for text in (entry.msgid, entry.msgid_plural)}
    call = re.compile(r'(?<![\w.])tn?\(\s*"((?:[^"\\]|\\.)*)"')
    missing = [
        (path.name, text)
        for room in ROOMS
        for path in (ROOT / room).rglob("static/**/*.js")
        if "i18n.js" in (source := path.read_text(encoding="utf-8"))
        for line in source.splitlines()
        if not line.lstrip().startswith(("//", "*", "/*"))
        for text in call.findall(line)
        if text not in known
    ]

    assert missing == []


def test_translations_gather_what_presets_say():
    known = {entry.msgid for entry in catalogue("django")}

    assert set(messages.texts_in_data()) - known == set()


def test_translations_reach_the_scripts(client):
    client.cookies["django_language"] = "zh-hans"

    page = client.get("/jsi18n/").content.decode()

    said = json.loads(re.search(r"const newcatalog = (\{.*?\});\n", page, re.DOTALL)[1])
    for entry in catalogue("djangojs"):
        key = f"{entry.msgctxt}\x04{entry.msgid}" if entry.msgctxt else entry.msgid
        assert said[key] == (answers(entry) if entry.msgid_plural else entry.msgstr)
    assert "Filter datasets" not in said  # the texts of pages stay at home


def test_sign_in_page_speaks_the_language_of_a_strangers_browser(db):
    page = Client(headers={"accept-language": "zh-CN,zh;q=0.9"}).get("/login/").content.decode()

    assert '<html lang="zh-hans"' in page
    assert "登录" in page
    assert "密码" in page
    assert "Sign in" not in page


@pytest.mark.parametrize(
    "path", ["/", "/datasets/", "/annotation/", "/training/", "/models/", "/evaluations/", "/services/", "/queue/"]
)
def test_pages_speak_the_language_the_reader_chose(alice, as_alice, path):
    alice.language = "zh-hans"
    alice.save()

    page = as_alice.get(path).content.decode()

    heading = re.search(r"<h1[^>]*>(.*?)</h1>", page, re.DOTALL)
    assert heading
    assert CHINESE.search(heading[1])
    for navigation in ("首页", "数据集", "训练", "推理"):
        assert navigation in page


def test_translations_of_plurals_exist_on_both_sides():
    with translation.override("zh-hans"):
        assert translation.ngettext("%(count)s image", "%(count)s images", 1) % {"count": 1} == "1 张图像"
        assert translation.ngettext("%(count)s image", "%(count)s images", 3) % {"count": 3} == "3 张图像"


def test_messages_compile_quietly_leaves_english_for_a_broken_catalogue(tmp_path, monkeypatch, caplog):
    def broken():
        raise OSError("Syntax error in po file")

    monkeypatch.setattr(messages, "compile_all", broken)

    messages.compile_quietly()

    assert "translations not compiled" in caplog.text

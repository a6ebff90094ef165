"""Django's admin site: names of models, colours and theme of the platform."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.utils import translation

from accounts.models import User
from aiplatform.lib import plurals

STATIC = Path(__file__).resolve().parents[2] / "aiplatform" / "static" / "base"


@pytest.mark.parametrize(
    ("one", "many"),
    [
        ("push", "pushes"), ("audit entry", "audit entries"), ("alarm address", "alarm addresses"), ("day", "days"),
        ("study", "studies"), ("video analysis", "video analyses"), ("media series", "media series"),
        ("predicted data", "predicted data"), ("model alias", "model aliases"), ("job", "jobs"),
    ],
)  # fmt: skip
def test_plural_follows_english_spelling(one, many):
    assert plurals.plural(one) == many


def test_models_of_the_platform_have_correct_plurals():
    wrong = {
        model._meta.label: str(model._meta.verbose_name_plural)
        for model in apps.get_models()
        if model.__module__.partition(".")[0] in plurals.OWN
        and re.search(r"([^aeiou]ys|ss|shs|chs|xs|zs|datas|reporteds|analysiss|\bapi|\bssh)$|^(api|ssh) ",
                      str(model._meta.verbose_name_plural))
    }  # fmt: skip
    names = {str(model._meta.verbose_name_plural) for model in admin.site._registry}

    assert wrong == {}
    assert {"exports", "audit entries", "alert recipients", "API tokens", "training defaults"} <= names


def test_models_of_the_admin_site_have_chinese_names():
    with translation.override("zh-hans"):
        names = {
            model._meta.label: (str(model._meta.verbose_name), str(model._meta.verbose_name_plural))
            for model in admin.site._registry
        }

    assert {label: pair for label, pair in names.items() if any(name.isascii() for name in pair)} == {}


def test_admin_site_uses_the_colours_of_the_platform():
    tokens = {
        value
        for name in ("tokens.css", "dark.css")
        for value in re.findall(r": (#\w{6});", (STATIC / name).read_text())
    }
    colors = settings.UNFOLD["COLORS"]

    assert set(colors["base"].values()) | set(colors["font"].values()) <= tokens
    assert {colors["primary"]["600"], colors["primary"]["700"]} <= tokens


def test_admin_site_follows_the_theme_of_its_reader(olga, as_olga):
    pages = {}
    for theme in ("dark", "light", ""):
        User.objects.filter(pk=olga.pk).update(theme=theme)
        pages[theme] = as_olga.get("/admin/").content.decode()

    assert "x-data=\"theme('dark')\"" in pages["dark"]
    assert "x-data=\"theme('light')\"" in pages["light"]
    assert 'x-data="theme()"' in pages[""]
    assert "Export targets" in pages[""]
    assert "base/admin" in pages[""]

"""The preset role that was called "Annotation person"."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.db import connection
from django.utils import translation

from accounts.access.permissions import ANNOTATOR, PRESET_ROLES, Action
from accounts.models import Role
from accounts.presentation import audit_facts
from accounts.services import roles
from tests.factories import people

pytestmark = pytest.mark.postgres
migration = import_module("accounts.migrations.0023_annotator_role")


def rename(direction=migration.rename):
    direction(apps, SimpleNamespace(connection=connection))
    roles.update_presets()


@pytest.fixture
def old(db):
    """The roles of an installation of an older version."""
    Role.objects.filter(name=ANNOTATOR).update(name="Annotation person")
    return Role.objects.get(name="Annotation person")


def test_annotator_role_is_renamed_and_keeps_its_holders(old):
    anna = people.user("anna", role=None)
    anna.roles.add(old)

    rename()
    rename()

    assert (anna.roles.get().pk, anna.roles.get().name) == (old.pk, "Annotator")
    assert sorted(Role.objects.filter(preset=True).values_list("name", flat=True)) == sorted(PRESET_ROLES)


def test_custom_role_called_annotator_stays_a_custom_role(old):
    custom = roles.create(name="Annotator", actions=[Action.MODELS_VIEW], by=None)
    before = custom.actions

    rename()

    custom.refresh_from_db()
    assert (custom.name, custom.preset, custom.actions) == ("Annotator 2", False, before)
    assert Role.objects.get(name="Annotator").pk == old.pk


def test_annotator_role_that_exists_twice_becomes_one(old):
    anna = people.user("anna", role=None)
    anna.roles.add(old)
    roles.update_presets()  # as after a partial migration

    rename()

    assert anna.roles.get() == Role.objects.get(name="Annotator", preset=True)
    assert not Role.objects.filter(name="Annotation person").exists()


def test_annotator_role_gets_its_former_name_back(db):
    number = Role.objects.get(name=ANNOTATOR).pk

    migration.restore(apps, SimpleNamespace(connection=connection))

    assert Role.objects.get(name="Annotation person").pk == number


def test_annotator_role_is_translated_also_by_its_former_name():
    with translation.override("zh-hans"):
        assert audit_facts.to_texts({"roles": ["Annotation person", "Annotator"]})[0][1] == "标注员, 标注员"

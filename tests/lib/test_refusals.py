"""Refusals of checks that do not depend on each other are heard together."""

from __future__ import annotations

import pytest
from django import forms

from aiplatform.lib.api import by_field
from aiplatform.lib.errors import DomainError, Invalid, NameTaken, NotAllowed, Refusals
from aiplatform.lib.pages import check_valid_fields, errors_shown_on


def both() -> DomainError:
    """A taken name and a wrong colour, as a service raises them."""
    found = Refusals()
    with found:
        raise NameTaken("There is one called so.")
    with found:
        raise Invalid("No colour.", field="colour")
    with pytest.raises(NameTaken) as refused:
        found.end()
    return refused.value


class Thing(forms.Form):
    name = forms.CharField()
    size = forms.IntegerField()
    hue = forms.CharField(required=False)
    called = {"colour": "hue"}


def test_refusals_raise_the_first_with_all_others_behind_it():
    refused = both()

    assert [(one.code, one.blamed) for one in refused.every] == [("name_taken", "name"), ("invalid", "colour")]
    assert refused.sentences == "There is one called so. No colour."


def test_refusals_say_the_same_sentence_once_and_nothing_where_nothing_is_wrong():
    found = Refusals()
    found.end()
    for _again in range(2):
        with found:
            raise Invalid("No colour.", field="colour")

    with pytest.raises(Invalid) as refused:
        found.end()
    assert refused.value.others == ()


def test_refusals_collect_neither_what_is_forbidden_nor_bugs():
    found = Refusals()

    with pytest.raises(NotAllowed), found:
        raise NotAllowed("You may not.")
    with pytest.raises(KeyError), found:
        raise KeyError("a bug")
    assert not found


def test_refusals_stand_at_their_fields_on_pages_and_in_the_api():
    form = Thing({"name": "a", "size": "1"})

    with errors_shown_on(form):
        raise both()

    assert form.errors == {"name": ["There is one called so."], "hue": ["No colour."]}
    assert by_field(both()) == {"name": ["There is one called so."], "colour": ["No colour."]}


def test_form_that_refuses_one_field_asks_the_service_about_the_others():
    form = Thing({"name": "taken", "size": "large"})

    def check(*, name: str = "", size: int = 0) -> None:
        assert size == 0  # the field that is wrong is not asked about
        if name == "taken":
            raise NameTaken("There is one called so.")

    check_valid_fields(form, check)

    assert set(form.errors) == {"name", "size"}

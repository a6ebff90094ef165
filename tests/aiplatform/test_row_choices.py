"""Choices among rows write what Django's choices write, and read the rows once."""

from __future__ import annotations

from typing import Any

import pytest
from django import forms

from accounts.models import User
from aiplatform.lib.columns import narrow
from aiplatform.lib.row_choices import RowChoice, RowChoices, offer
from workers.core.models import Membership

pytestmark = pytest.mark.django_db


class PersonChoice(RowChoice):
    columns = ("username",)

    def text_of(self, username: str) -> str:
        return username


class PersonChoices(RowChoices):
    columns = ("username",)

    def text_of(self, username: str) -> str:
        return username


class Named(forms.ModelChoiceField):
    def label_from_instance(self, obj: Any) -> str:
        return str(obj.username)


class NamedMany(forms.ModelMultipleChoiceField):
    widget = forms.CheckboxSelectMultiple

    def label_from_instance(self, obj: Any) -> str:
        return str(obj.username)


class Rows(forms.Form):
    one = PersonChoice(User.objects.none(), empty_label="Choose <one>")
    many = PersonChoices(User.objects.none(), required=False)


class Django(forms.Form):
    one = Named(User.objects.none(), empty_label="Choose <one>")
    many = NamedMany(User.objects.none(), required=False)


@pytest.fixture
def both(alice, bob):
    def made(**initial: Any) -> tuple[forms.Form, forms.Form]:
        rows, usual = Rows(initial=initial), Django(initial=initial)
        people = User.objects.order_by("username")
        offer(people, rows.fields["one"], rows.fields["many"])
        for name in ("one", "many"):
            usual.fields[name].queryset = people
        return rows, usual

    return made


def test_row_choices_write_the_html_of_django(both, alice, bob):
    for initial in ({}, {"one": alice.pk, "many": [bob.pk]}):
        rows, usual = both(**initial)

        assert str(rows["many"]) == str(usual["many"])
        assert str(rows["one"]) == str(usual["one"])
    assert f'<option value="{alice.pk}" selected>' in str(rows["one"])


def test_row_choices_of_a_form_read_their_rows_once(both, django_assert_num_queries):
    rows, _usual = both()

    with django_assert_num_queries(1):
        str(rows["one"]), str(rows["many"])


def test_row_choice_gives_the_row_that_was_sent(both, bob):
    rows, _usual = both()

    assert rows.fields["one"].clean(str(bob.pk)) == bob
    with pytest.raises(forms.ValidationError):
        rows.fields["one"].clean("0")


def test_narrow_reads_named_columns_and_keys_of_a_relation(alice, django_assert_num_queries):
    rows = narrow(Membership.objects.select_related("user", "cluster"), user=("username",), cluster=())

    with django_assert_num_queries(1):
        found = list(rows)
        assert found[0].user.username
        assert found[0].cluster.pk == found[0].cluster_id
    with django_assert_num_queries(1):
        assert found[0].user.date_joined

"""The table of new users: one row per user, all or none, every error at its cell."""

from __future__ import annotations

import csv
import io
import re
from urllib.parse import unquote

import pytest
from django.test import override_settings
from django.utils import translation

from accounts.access import clusters
from accounts.access.permissions import ANNOTATOR, SYSTEM_ADMIN, USER, Action
from accounts.forms.new_users import MAX_ROWS, SHOWN_ROWS
from accounts.models import AuditEntry, Role, User
from accounts.services import roles
from tests.conftest import signed_in
from tests.factories import people as cast

pytestmark = pytest.mark.postgres
PATH = "/people/new/"


def role(name=USER):
    return Role.objects.get(name=name)


def table(*rows, **more):
    """What a browser sends for these rows, with the usual role where a row names none."""
    cells = {
        f"u-{n}-{name}": value for n, row in enumerate(rows) for name, value in ({"role": role().pk} | row).items()
    }
    return {"u-TOTAL_FORMS": str(len(rows)), "u-INITIAL_FORMS": "0", **cells, **more}


def errors(page):
    return [dict(form.errors) for form in page.context["table"]]


def test_new_users_are_created_with_role_cluster_and_group_of_their_row(as_olga, cluster):
    lab = roles.create_group(name="lab", description="d", roles=[role()], by=None)
    page = as_olga.post(
        PATH,
        table(
            {"username": "rosa", "cluster": cluster.pk, "group": lab.pk},
            {"username": "tom", "nickname": "Tom", "role": role(ANNOTATOR).pk, "email": "t@example.org"},
            {},
            {"username": "uwe", "password": "my own first phrase"},
        ),
    )

    rosa, tom, uwe = (User.objects.get(username=name) for name in ("rosa", "tom", "uwe"))
    passwords = {person.username: password for person, password in page.context["made"]}
    assert [person.nickname for person in (rosa, tom, uwe)] == ["rosa", "Tom", "uwe"]
    assert [list(person.roles.all()) for person in (rosa, tom)] == [[role()], [role(ANNOTATOR)]]
    assert list(rosa.user_groups.all()) == [lab]
    assert (clusters.ids_for_user(rosa), clusters.ids_for_user(tom)) == ([cluster.pk], [])
    assert tom.email == "t@example.org"
    assert passwords["uwe"] == "my own first phrase"
    assert all(User.objects.get(username=name).check_password(word) for name, word in passwords.items())
    assert rosa.must_change_password
    assert rosa.can(Action.TRAINING_SUBMIT)


def test_new_users_page_shows_passwords_once_with_a_file_for_a_spreadsheet(as_olga):
    page = as_olga.post(PATH, table({"username": "@rosa", "nickname": "罗莎"})).content.decode()
    password = re.search(r'id="first-password-1">([^<]+)<', page)[1]

    rows = list(csv.reader(io.StringIO(unquote(re.search(r'href="data:text/csv;charset=utf-8,([^"]+)"', page)[1]))))

    assert rows[1] == ["'@rosa", "罗莎", password]
    assert "no-store" in as_olga.get(PATH)["Cache-Control"]
    assert password not in str(list(AuditEntry.objects.values_list("facts", flat=True)))


def test_new_users_errors_of_all_rows_are_shown_at_once_and_nothing_is_lost(as_olga, alice, cluster):
    page = as_olga.post(
        PATH,
        table(
            {"username": "rosa", "nickname": "Rosa"},
            {"username": "ALICE"},
            {"username": "..", "email": "nowhere", "password": "123", "role": ""},
            {"nickname": "Without a name"},
            {"username": "Rosa", "role": "name:Boss", "cluster": "name:moon"},
        ),
    )
    text = page.content.decode()

    assert page.status_code == 422
    assert not User.objects.filter(username="rosa").exists()
    assert [set(found) for found in errors(page)] == [
        set(), {"username"}, {"username", "email", "password", "role"}, {"username"}, {"username", "role", "cluster"}
    ]  # fmt: skip
    assert errors(page)[1]["username"] == ["The name “ALICE” is already in use."]
    assert errors(page)[4] == {
        "username": ["Row 1 has the same username."],
        "role": ["No role is named “Boss”."],
        "cluster": ["No cluster is named “moon”."],
    }
    assert '<option value="name:Boss" selected>Boss</option>' in text
    assert 'value="Without a name"' in text
    assert 'name="columns" value="email" checked' in text  # a column with a value or an error shows
    assert 'name="columns" value="phone" checked' not in text


def test_new_users_take_pasted_names_of_roles_in_any_case_and_language_and_the_former_ones(as_olga):
    with override_settings(LANGUAGE_CODE="zh-hans"), translation.override("zh-hans"):
        local = role(ANNOTATOR).label
        page = as_olga.post(
            PATH,
            table(
                {"username": "a", "role": "name:annotator"},
                {"username": "b", "role": f"name:{local}"},
                {"username": "c", "role": "name:Annotation person"},
            ),
            headers={"Accept-Language": "zh-hans"},
        )

    assert local == "标注员"
    assert page.status_code == 200
    assert {person.roles.get().name for person in User.objects.filter(username__in="abc")} == {ANNOTATOR}


def test_new_users_page_without_a_row_says_so(as_olga):
    page = as_olga.post(PATH, table({}, {}))

    assert errors(page)[0] == {"username": ["Enter at least one user."]}
    assert page.status_code == 422


def test_new_users_page_adds_rows_without_scripts_and_keeps_what_was_typed(as_olga):
    first = as_olga.get(PATH)
    more = as_olga.post(PATH, table({"username": "rosa", "phone": "1"}, {}, go="more"))

    assert len(first.context["table"].forms) == SHOWN_ROWS
    assert len(more.context["table"].forms) == 2 + SHOWN_ROWS
    assert 'value="rosa"' in more.content.decode()
    assert 'name="columns" value="phone" checked' in more.content.decode()
    assert more.status_code == 200
    assert not User.objects.filter(username="rosa").exists()


def test_new_users_are_limited_per_request(as_olga):
    page = as_olga.post(PATH, table(*({"username": f"n{number}"} for number in range(MAX_ROWS + 1))))

    assert page.status_code == 422
    assert f"Create at most {MAX_ROWS} users at once." in page.content.decode()
    assert not User.objects.filter(username="n0").exists()


def test_new_users_table_offers_the_only_cluster_and_the_usual_role(as_olga, cluster):
    form = as_olga.get(PATH).context["table"].forms[0]

    assert form["role"].value() == str(role().pk)
    assert form["cluster"].value() == str(cluster.pk)
    assert "group" not in form.fields  # there is none


def test_c05_new_users_table_offers_only_what_its_reader_can_grant(cluster):
    clerk = cast.user("clerk", role=None)
    clerk.roles.add(roles.create(name="clerks", actions=["people.manage"], by=None))
    client = signed_in(clerk)

    form = client.get(PATH).context["table"].forms[0]
    refused = client.post(PATH, table({"username": "rosa", "role": role(SYSTEM_ADMIN).pk, "cluster": cluster.pk}))

    assert "cluster" not in form.fields
    assert {label for pk, label in form.fields["role"].choices if pk} == {"clerks"}
    assert (refused.status_code, set(errors(refused)[0])) == (422, {"role"})
    client.post(PATH, table({"username": "rosa", "role": role("clerks").pk, "cluster": cluster.pk}))
    assert clusters.ids_for_user(User.objects.get(username="rosa")) == []


def test_new_user_who_joins_a_cluster_is_in_the_audit_log_with_who_created_them(as_olga, cluster):
    as_olga.post(PATH, table({"username": "rosa", "cluster": cluster.pk}))

    rows = AuditEntry.objects.filter(target="rosa").order_by("pk").values_list("actor", "verb")
    assert ("olga", "account_made") in rows
    assert ("olga", "cluster_member_added") in rows
    assert all(actor == "olga" for actor, _verb in rows)

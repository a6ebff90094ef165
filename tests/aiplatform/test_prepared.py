"""Prepared queries return what the query set that they were made of returns."""

from __future__ import annotations

import pytest
from django.db.models import Count

from accounts.models import Role, User
from aiplatform.lib.prepared import PreparedQuery

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


def rows_of(user, floor):
    return User.objects.filter(pk=user, roles__pk__gt=floor).order_by("roles").values_list("username", "roles__actions")


def test_prepared_query_returns_the_rows_of_its_query_set_for_each_parameter(alice, bob, olga):
    prepared = PreparedQuery(rows_of)

    found = [prepared(user.pk, floor) for user in (alice, bob, olga) for floor in (0, 10_000)]

    assert found == [list(rows_of(user.pk, floor)) for user in (alice, bob, olga) for floor in (0, 10_000)]
    assert found[0][0][0] == "alice"
    assert isinstance(found[0][0][1], list)  # JSON was read


def test_prepared_query_builds_its_sql_once(alice, django_assert_num_queries):
    built = []
    prepared = PreparedQuery(lambda user: built.append(user) or User.objects.filter(pk=user).values_list("pk"))

    with django_assert_num_queries(3):
        rows = [prepared(alice.pk), prepared(0), prepared(alice.pk)]

    assert rows == [[(alice.pk,)], [], [(alice.pk,)]]
    assert len(built) == 1


def test_prepared_query_without_parameters_sees_rows_that_are_written_later(alice):
    counted = PreparedQuery(lambda: Role.objects.order_by().values("preset").annotate(n=Count("pk")).values_list("n"))
    before = sum(n for (n,) in counted())

    Role.objects.create(name="curator", actions=[])

    assert sum(n for (n,) in counted()) == before + 1


def test_prepared_query_refuses_a_parameter_that_its_sql_does_not_compare_with():
    prepared = PreparedQuery(lambda user: User.objects.filter(username=f"person{user}").values_list("pk"))

    with pytest.raises(TypeError, match="whole number"):
        prepared(7)

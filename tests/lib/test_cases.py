"""Tables of cases that run as one test."""

from __future__ import annotations

import pytest

from accounts.models import User
from tests.cases import case_table


def test_table_reports_every_failed_case_by_name_and_runs_the_others():
    calls = []

    @case_table("number", [1, 2, 3, 4])
    def check(number):
        calls.append(number)
        assert number % 2, "is even"

    with pytest.raises(AssertionError) as failure:
        check()

    assert calls == [1, 2, 3, 4]
    message = str(failure.value)
    assert message.startswith("2 of 4 cases failed:")
    assert "2: AssertionError: is even" in message
    assert "4: AssertionError: is even" in message
    assert "3: " not in message


def test_table_reports_an_expected_error_that_was_not_raised():
    @case_table("number", [1])
    def check(number):
        with pytest.raises(ValueError):  # noqa: PT011 - the case raises nothing
            int(number)

    with pytest.raises(AssertionError, match="1 of 1 cases failed"):
        check()


def test_table_skips_single_cases_and_is_skipped_where_all_cases_are():
    calls = []

    def check(number):
        if number < 3:
            pytest.skip("too small")
        calls.append(number)

    case_table("number", [1, 2, 3])(check)()
    with pytest.raises(pytest.skip.Exception):
        case_table("number", [1, 2])(check)()

    assert calls == [3]


def test_stacked_tables_run_the_product_of_their_cases():
    calls = []

    @case_table(("a", "b"), [(1, 2), (3, 4)], ids=["low", "high"])
    @case_table("c", ["x", "y"])
    def check(a, b, c):
        calls.append((a, b, c))
        assert (a, c) != (3, "y")

    with pytest.raises(AssertionError, match="high, y: AssertionError"):
        check()

    assert calls == [(1, 2, "x"), (1, 2, "y"), (3, 4, "x"), (3, 4, "y")]


def test_table_refuses_a_table_without_cases_and_a_coroutine_function():
    async def check(number):
        pass

    with pytest.raises(ValueError, match="0 cases"):
        case_table("number", [])
    with pytest.raises(TypeError):
        case_table("number", [1])(check)


@case_table("name", ["a", "b"])
def test_table_case_has_its_own_folder_and_patches(name, tmp_path, monkeypatch):
    assert not hasattr(pytest, "patched_by_a_case")
    monkeypatch.setattr(pytest, "patched_by_a_case", name, raising=False)
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_text(name)


@pytest.mark.django_db
@case_table("name", ["a", "b"], rollback=True)
def test_table_case_with_rollback_finds_no_rows_of_another_case(name):
    assert not User.objects.filter(username__startswith="row-").exists()
    User.objects.create(username=f"row-{name}")

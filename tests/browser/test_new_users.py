"""The table of new users in a real browser: keyboard, paste, file, columns, and without scripts."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from accounts.access import clusters
from accounts.models import User
from accounts.services import roles
from tests.browser.conftest import in_both_looks

PATH = "/people/new/"
COPIES = ["clipboard-read", "clipboard-write"]


def paste(page, field, text):
    page.evaluate("text => navigator.clipboard.writeText(text)", text)
    field.press("Control+v")


def usernames(page):
    return page.locator('[data-column="username"]').evaluate_all("all => all.map((field) => field.value)")


def test_table_of_new_users_is_filled_by_keyboard_alone(open_as, olga, cluster, accessible):
    page = open_as(olga)
    page.goto(PATH)

    page.keyboard.type("rosa")  # the first cell has the focus
    page.keyboard.press("Enter")
    page.keyboard.type("tom")
    for _row in range(3):
        page.keyboard.press("Enter")
    page.keyboard.type("uwe")  # in the fifth row, the last one
    assert page.locator("[data-user-row]").count() == 5
    page.keyboard.press("Enter")
    page.keyboard.type("zoe")
    page.get_by_label("Cluster 6").press("Tab")  # from the last cell of the last row
    page.keyboard.type("max")

    assert usernames(page) == ["rosa", "tom", "", "", "uwe", "zoe", "max"]
    accessible(page)
    page.get_by_role("button", name="Create 5 users").press("Enter")

    page.get_by_role("heading", name="5 users created").wait_for()
    accessible(page)
    assert User.objects.filter(username__in=["rosa", "tom", "uwe", "zoe", "max"]).count() == 5
    assert clusters.ids_for_user(User.objects.get(username="max")) == [cluster.pk]


def test_table_of_new_users_takes_rows_of_a_spreadsheet(open_as, olga, cluster, accessible, fits, shot):
    roles.create_group(name="lab", description="d", roles=list(olga.roles.all()), by=None)
    page = open_as(olga, permissions=COPIES)
    page.watch.allow("status of 422")
    page.goto(PATH)

    paste(page, page.get_by_label("Username 1"), "rosa\tRosa Luz\tAnnotator\ntom\tTom\tBoss\n")
    assert usernames(page)[:3] == ["rosa", "tom", ""]
    header = 'E-mail,username,Group,shoe size\r\n"li@example.org",li.wei,lab,40\r\n,zoe,"moon, old",\r\n'
    paste(page, page.get_by_label("Username 3"), header)

    assert usernames(page) == ["rosa", "tom", "li.wei", "zoe", ""]
    assert page.get_by_label("E-mail 3").input_value() == "li@example.org"
    assert page.get_by_label("Phone 3").is_hidden()
    page.get_by_text("Columns that were ignored: shoe size").wait_for()
    shot(page, "new-users-pasted")
    page.get_by_role("button", name="Create 4 users").click()
    page.get_by_text("No role is named “Boss”.").wait_for()
    page.get_by_text("No group is named “moon, old”.").wait_for()
    assert usernames(page)[:4] == ["rosa", "tom", "li.wei", "zoe"]
    assert page.get_by_label("Role 2").evaluate("field => document.activeElement === field")
    accessible(page)
    fits(page)
    shot(page, "new-users-refused")
    page.get_by_label("Role 2").select_option("User")
    page.get_by_label("Group 4").select_option("–")
    assert page.get_by_text("No role is named “Boss”.").count() == 0
    page.get_by_role("button", name="Create 4 users").click()

    page.get_by_role("heading", name="4 users created").wait_for()
    page.get_by_role("button", name="Copy all").click()
    page.get_by_text("Copied").wait_for()
    lines = page.evaluate("navigator.clipboard.readText()").split("\n")
    assert [line.split("\t")[0] for line in lines[1:5]] == ["rosa", "tom", "li.wei", "zoe"]
    assert User.objects.get(username="rosa").roles.get().name == "Annotator"
    with page.expect_download() as file:
        page.get_by_role("link", name="Download CSV").click()
    assert file.value.suggested_filename == "users.csv"
    shot(page, "new-users-created")


def test_table_of_new_users_is_filled_from_a_file_in_gbk(open_as, olga, tmp_path):
    file = tmp_path / "people.csv"
    file.write_bytes("用户名,昵称,角色\nli.wei,李伟,标注员\n".encode("gb18030"))
    page = open_as(olga, language="zh-CN")
    page.goto(PATH)

    with page.expect_file_chooser() as chooser:
        page.get_by_role("link", name="从文件填充…").click()
    chooser.value.set_files(file)

    expect(page.get_by_label("昵称 1")).to_have_value("李伟")
    assert page.locator("[data-column=role]").first.evaluate("field => field.selectedOptions[0].text") == "标注员"


def test_table_of_new_users_sends_larger_files_to_the_import(open_as, olga, tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("username\n" + "\n".join(f"n{number}" for number in range(51)))
    page = open_as(olga)
    page.goto(PATH)

    page.locator("[data-table-file]").set_input_files(file)

    page.get_by_role("link", name="Import", exact=True).click()
    page.wait_for_url("**/people/file/")


def test_table_of_new_users_removes_a_row_and_counts(open_as, olga):
    page = open_as(olga, permissions=COPIES)
    page.goto(PATH)
    paste(page, page.get_by_label("Username 1"), "rosa\ntom\nuwe")

    page.get_by_role("button", name="Remove row 2").click()

    page.get_by_role("button", name="Create 2 users").dblclick()
    page.get_by_role("heading", name="2 users created").wait_for()
    assert not User.objects.filter(username="tom").exists()


def test_table_of_new_users_works_without_scripts(open_as, olga):
    page = open_as(olga, java_script_enabled=False)
    page.goto(PATH)

    page.locator("details.menu summary", has_text="Columns").click()
    page.get_by_text("E-mail", exact=True).first.click()
    page.get_by_label("Username 1").fill("rosa")
    page.get_by_label("E-mail 1").fill("rosa@example.org")
    page.get_by_role("button", name="Add row").click()
    page.get_by_label("Username 7").fill("tom")
    page.get_by_role("button", name="Create users").click()

    page.get_by_role("heading", name="2 users created").wait_for()
    assert User.objects.get(username="rosa").email == "rosa@example.org"


@in_both_looks
def test_table_of_new_users_fits(open_as, olga, cluster, accessible, fits, shot, width, dark, language):
    page = open_as(olga, width=width, dark=dark, language=language)
    page.goto(PATH)

    fits(page)
    accessible(page)
    shot(page, f"new-users-{width}-{'dark' if dark else 'light'}")
    page.locator("details.menu summary", has_text="列" if language == "zh-CN" else "Columns").click()
    accessible(page)
    shot(page, f"new-users-columns-{width}")


@pytest.mark.parametrize("path", ["/people/groups/new/", "/people/roles/new/"])
def test_new_group_and_new_role_are_accessible(open_as, olga, accessible, fits, shot, path):
    page = open_as(olga, dark=True, width=390)
    page.watch.allow("status of 422")
    page.goto(path)
    page.locator(".form-actions .btn-primary").click()
    page.locator(".form-error").first.wait_for()
    accessible(page)
    fits(page)
    shot(page, f"new{path.replace('/', '-')}")


def test_role_without_jobs_needs_no_cluster(open_as, olga, cluster):
    page = open_as(olga)
    page.goto("/people/new/")
    role, cell = page.get_by_label("Role 1", exact=True), page.get_by_label("Cluster 1", exact=True)

    role.select_option("Annotator")
    shut, shown = cell.is_disabled(), cell.input_value()
    role.select_option("User")

    assert (shut, shown) == (True, "")
    assert (cell.is_disabled(), cell.input_value()) == (False, str(cluster.pk))

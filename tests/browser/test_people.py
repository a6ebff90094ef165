"""The account pages in a real browser, from the console's link to an account at work."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from accounts.access import sharing
from accounts.models import User
from accounts.services import links, passwords, roles
from datasets.models import Dataset
from tests.browser.conftest import in_both_looks
from tests.factories import people

DOORS = ["/login/", "/register/"]
OWN = [
    *["/account/", "/account/password/", "/account/tokens/"],
    *["/account/second-factor/", "/account/sessions/", "/account/ssh-keys/"],
]
ADMIN = [
    *["/people/", "/people/new/", "/people/file/", "/people/audit/", "/people/registration/"],
    *["/people/groups/", "/people/groups/new/", "/people/roles/", "/people/roles/new/"],
]
BOTH = pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])


@BOTH
def test_sign_in_pages_have_no_accessibility_violation(open_as, accessible, fits, shot, dark):
    page = open_as(None, dark=dark, width=390 if dark else 1440)
    for path in DOORS:
        page.goto(path)
        accessible(page)
        fits(page)
        shot(page, f"sign-in-{path.strip('/')}-{'dark' if dark else 'light'}")


@BOTH
def test_account_and_people_pages_have_no_accessibility_violation(open_as, olga, alice, accessible, fits, shot, dark):
    page = open_as(olga, dark=dark, width=1024 if dark else 390)
    group = roles.create_group(name="lab", description="d", roles=list(alice.roles.all()), members=[alice], by=None)
    role = roles.create(name="viewer", description="d", actions=["models.view"], by=None)
    dataset = Dataset.objects.create(owner=alice, name="cells", intro="of blood")
    sharing.set_level(dataset, alice, "view")
    detail = [
        f"/share/dataset/{dataset.pk}/",
        f"/people/{alice.pk}/",
        f"/people/{alice.pk}/delete/",
        f"/people/groups/{group.pk}/",
        f"/people/roles/{role.pk}/",
    ]
    for path in [*OWN, *ADMIN, *detail]:
        page.goto(path)
        accessible(page)
        fits(page)
        shot(page, f"people{path.replace('/', '-')}{'dark' if dark else 'light'}", full=True)


def test_pages_in_chinese_fit_and_say_so(open_as, olga, fits):
    page = open_as(olga, language="zh-CN", width=390)

    page.goto("/people/")

    assert page.locator("html").get_attribute("lang") == "zh-hans"
    fits(page)


def test_console_link_leads_to_an_account_for_a_researcher_who_signs_in(open_as, site, cluster, accessible):
    admin = open_as(None)
    admin.goto(links.issue_first_admin_link())
    accessible(admin)
    admin.get_by_label("Username").fill("root-of-lab")
    admin.get_by_label("Password", exact=True).fill("a long enough phrase")
    admin.get_by_label("Repeat password").fill("a long enough phrase")
    admin.get_by_role("button", name="Create account and sign in").click()
    admin.get_by_role("link", name="Users", exact=True).click()
    admin.get_by_role("link", name="New users").click()
    admin.get_by_label("Username 1").fill("rosa")
    accessible(admin)
    admin.get_by_role("button", name="Create 1 user").click()
    first = admin.locator("#first-password-1").inner_text()
    accessible(admin)

    rosa = open_as(None)
    rosa.goto("/")
    rosa.get_by_label("Username").fill("rosa")
    rosa.get_by_label("Password").fill(first)
    rosa.get_by_role("button", name="Sign in").click()
    rosa.get_by_label("New password").fill("my very own phrase")
    accessible(rosa)
    rosa.get_by_role("button", name="Set password").click()

    rosa.get_by_role("heading", name="Home", exact=True).wait_for()
    assert rosa.get_by_role("link", name="Users", exact=True).count() == 0
    assert rosa.locator(".top-cluster").inner_text() == "default"


@in_both_looks
def test_first_sign_in_asks_once_for_a_password_that_can_be_shown(
    open_as, alice, accessible, fits, shot, width, dark, language
):
    passwords.change(user=alice, password="a first phrase", must_change=True)
    page = open_as(None, width=width, dark=dark, language=language)
    page.watch.allow("status of 422")
    page.goto("/login/")
    page.locator("[name=username]").fill("alice")
    page.locator("[name=password]").fill("a first phrase")
    page.locator(".btn-primary").click()
    field, button = page.locator("[name=password]"), page.locator("[data-reveal]")
    field.fill("a first phrase")
    accessible(page)
    fits(page)
    shot(page, f"first-sign-in-{width}")
    page.locator(".btn-primary").click()
    page.locator(".form-error").wait_for()
    accessible(page)

    field.fill("my very own phrase")
    button.press("Enter")
    assert field.get_attribute("type") == "text"
    assert button.get_attribute("aria-pressed") == "true"
    page.locator(".btn-primary").click()

    page.wait_for_url(lambda url: "password" not in url)
    assert User.objects.get(pk=alice.pk).check_password("my very own phrase")


def test_people_list_filters_while_typing_and_keeps_it_in_the_address(open_as, olga, alice, bob):
    page = open_as(olga)
    page.goto("/people/")

    page.get_by_label("Name, phone or e-mail").press_sequentially("ali")

    page.get_by_role("link", name="bob", exact=True).wait_for(state="hidden")
    assert page.get_by_role("link", name="alice", exact=True).is_visible()
    page.wait_for_url("**/people/?q=ali*")
    page.reload()
    assert page.get_by_label("Name, phone or e-mail").input_value() == "ali"


def test_person_page_disables_an_account_after_confirmation(open_as, olga, alice):
    page = open_as(olga)
    page.goto(f"/people/{alice.pk}/")

    page.locator(".page-actions details.menu summary").click()
    page.get_by_role("button", name="Disable").click()
    page.get_by_role("dialog").get_by_role("button", name="Disable").click()

    page.get_by_role("button", name="Enable").wait_for()
    assert not User.objects.get(pk=alice.pk).is_active


def test_token_page_copies_a_new_token(open_as, alice):
    page = open_as(alice, permissions=["clipboard-read", "clipboard-write"])
    page.goto("/account/tokens/")
    page.get_by_label("Name").fill("laptop")
    page.get_by_role("button", name="Create token").click()

    page.get_by_role("button", name="Copy").click()

    page.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()").startswith("aip_")


def test_overview_tells_someone_without_rights_whom_to_ask(open_as, site, accessible):
    page = open_as(people.user("carol", role=None))
    page.watch.allow("status of 403")

    page.goto("/datasets/")

    assert "Ask an administrator" in page.inner_text("main")
    accessible(page)
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="Sign in").wait_for()


def test_people_field_finds_by_name_and_takes_a_hundred_pasted_names_by_keyboard(
    open_as, olga, alice, cluster, accessible, fits, shot
):
    rosa = people.user("rosa.w")
    User.objects.bulk_create(User(username=f"p{n:03}", nickname="Rosa") for n in range(100))
    page = open_as(olga, width=390, permissions=["clipboard-read", "clipboard-write"])
    page.watch.allow("status of 422")
    page.goto(f"/clusters/{cluster.pk}/members/")
    page.get_by_role("button", name="Add users").press("Enter")
    field = page.get_by_role("combobox", name="Users")

    field.press_sequentially("rosa.w")
    page.get_by_role("option", name="rosa.w").wait_for()
    accessible(page)
    shot(page, "people-field-found")
    field.press("ArrowDown")
    field.press("Enter")
    page.evaluate("navigator.clipboard.writeText('p000\\np001, p002 nobody.here')")
    field.press("Control+v")
    shot(page, "people-field-chosen")
    page.get_by_role("button", name="Add", exact=True).press("Enter")

    page.get_by_text("No user is named “nobody.here”.").wait_for()
    shot(page, "people-field-refused")
    fits(page)
    accessible(page)
    page.get_by_role("button", name="Remove nobody.here").press("Enter")
    page.evaluate("names => navigator.clipboard.writeText(names)", "\n".join(f"p{n:03}" for n in range(100)))
    field.press("Control+v")
    page.get_by_role("button", name="Add", exact=True).press("Enter")

    page.get_by_text("101 users added.").wait_for()
    assert cluster.memberships.filter(user=rosa).exists()


def test_people_field_keeps_what_stands_half_typed(open_as, olga, alice, bob):
    page = open_as(olga)
    group = roles.create_group(name="lab", description="d", roles=list(alice.roles.all()), by=None)
    page.goto(f"/people/groups/{group.pk}/")
    field = page.get_by_role("combobox", name="Users")

    field.fill("alice,")
    field.press_sequentially("bob")
    page.get_by_role("button", name="Add to group").click()

    page.get_by_role("link", name="bob", exact=True).wait_for()
    assert set(group.users.all()) == {alice, bob}


def test_forms_keep_a_chosen_file_and_all_else_when_something_is_refused(open_as, olga, shot, tmp_path):
    table = tmp_path / "people.csv"
    table.write_text("name\nrosa\n")
    page = open_as(olga)
    page.watch.allow("status of 422")
    page.goto("/people/file/")
    page.set_input_files("input[type=file]", table)
    assert "people.csv" in page.locator("[data-drop-names]").inner_text()
    page.get_by_label("Annotator").check()

    page.get_by_role("button", name="Create accounts").click()

    page.get_by_text("The first line must name the columns").wait_for()
    assert page.get_by_text("Choose the file again").count() == 0
    assert page.locator("input[type=file]").evaluate("input => input.files[0].name") == "people.csv"
    assert "people.csv" in page.locator("[data-drop-names]").inner_text()
    assert page.get_by_label("Annotator").is_checked()
    shot(page, "people-file-refused")
    table.write_text("username,nickname\nrosa,Rosa\n")
    page.set_input_files("input[type=file]", table)
    page.get_by_role("button", name="Create accounts").click()
    page.wait_for_url("**/people/file/*/")


@pytest.mark.parametrize(("language", "said"), [("en-GB", "Choose the file again"), ("zh-CN", "请重新选择文件")])
def test_form_without_scripts_says_that_a_chosen_file_is_lost(open_as, olga, shot, tmp_path, language, said):
    table = tmp_path / "people.csv"
    table.write_text("name\nrosa\n")
    page = open_as(olga, language=language, java_script_enabled=False)
    page.watch.allow("status of 422")
    page.goto("/people/file/")
    assert page.get_by_text(said).count() == 0
    page.set_input_files("input[type=file]", table)

    page.locator("form[data-keeps-files] .btn-primary").click()

    page.get_by_text(said).wait_for()
    assert "people.csv" in page.get_by_text(said).inner_text()
    shot(page, f"people-file-lost-{language}")


def test_model_form_keeps_the_file_when_its_name_is_refused(open_as, alice, shot, tmp_path):
    model = tmp_path / "weights.onnx"
    model.write_bytes(b"no model")
    page = open_as(alice, width=390, language="zh-CN")
    page.watch.allow("status of 422")
    page.goto("/models/new/")
    page.set_input_files("[data-file]", model)
    expect(page.locator("[data-submit]")).to_be_enabled()
    page.locator("input[name=name]").fill("a/b")

    page.locator("[data-submit]").click()

    page.locator(".form-error").first.wait_for()
    expect(page.locator("[data-upload] [data-name]")).to_have_text("weights.onnx")
    assert page.locator("input[name=name]").input_value() == "a/b"
    shot(page, "model-upload-refused-zh")

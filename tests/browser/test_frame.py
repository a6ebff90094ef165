"""The frame in a real browser: side bar, search, themes, sizes, accessibility."""

import pytest

SIZES = [(1440, 900), (1024, 768), (390, 844)]
PAGES = ["/", "/styleguide/"]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_frame_page_has_no_accessibility_violation(open_as, olga, accessible, path, dark):
    page = open_as(olga, dark=dark)

    page.goto(path)

    accessible(page)


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("path", PAGES)
def test_frame_page_fits_its_window(open_as, olga, fits, shot, path, width, height):
    page = open_as(olga, width=width, height=height)

    page.goto(path)

    fits(page)
    shot(page, f"frame-{path.strip('/') or 'overview'}-{width}")


def test_side_bar_stays_folded_on_the_next_page(open_as, olga):
    page = open_as(olga)
    page.goto("/")

    page.get_by_role("button", name="Collapse side bar").click()
    page.goto("/styleguide/")

    assert page.locator(".side").bounding_box()["width"] < 80


def test_search_is_focused_by_slash_and_enter_opens_what_was_found(open_as, olga, alice):
    page = open_as(olga)
    page.goto("/styleguide/")

    page.keyboard.press("/")
    page.keyboard.type("alic")
    page.get_by_role("option", name="Alice").wait_for()
    page.keyboard.press("Enter")

    page.wait_for_url("**/people/*/")


def test_menu_closes_on_escape_and_gives_focus_back(open_as, alice):
    page = open_as(alice)
    page.goto("/")
    summary = page.get_by_label("Account of Alice")

    summary.click()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")

    assert page.locator("details.menu[open]").count() == 0
    assert summary.evaluate("element => element === document.activeElement")


def test_theme_is_worn_at_once_and_remembered(open_as, alice):
    page = open_as(alice)
    page.goto("/")
    before = page.evaluate("getComputedStyle(document.body.parentElement).backgroundColor")

    page.get_by_label("Account of Alice").click()
    with page.expect_response("**/api/v1/me/"):
        page.get_by_role("button", name="Dark").click()
    page.reload()

    assert page.locator("html").get_attribute("data-theme") == "dark"
    assert page.evaluate("getComputedStyle(document.body.parentElement).backgroundColor") != before


def test_side_bar_opens_over_the_page_on_a_narrow_screen(open_as, olga, accessible, shot):
    page = open_as(olga, width=390, height=844)
    page.goto("/")

    page.get_by_role("button", name="Menu").click()

    page.get_by_role("link", name="Users").wait_for(state="visible")
    accessible(page)
    shot(page, "frame-menu-390")
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Users").wait_for(state="hidden")


def test_confirm_dialog_of_a_dangerous_action_waits_for_the_typed_name(open_as, olga, accessible):
    page = open_as(olga)
    page.goto("/styleguide/")

    page.get_by_role("button", name="Primary action").click()

    dialog = page.get_by_role("dialog")
    assert dialog.get_by_role("button", name="Delete").is_disabled()
    accessible(page)
    dialog.get_by_label("Type bccd to confirm").fill("bccd")
    assert dialog.get_by_role("button", name="Delete").is_enabled()


def test_error_page_of_a_missing_page_says_what_to_do_and_its_request_id(open_as, alice, accessible):
    page = open_as(alice)
    page.watch.allow("status of 404")

    answer = page.goto("/no-such-page/")

    assert answer.status == 404
    assert answer.headers["x-request-id"] in page.inner_text("body")
    accessible(page)


def test_static_files_are_not_requested_again_by_a_second_page(open_as, alice):
    page = open_as(alice)
    page.goto("/datasets/")
    page.goto("/datasets/new/")
    page.goto("/datasets/")  # every file of this page has been here before

    transferred = """() => performance.getEntriesByType("resource").filter((one) => one.name.includes("/static/"))
        .map((one) => [one.name, one.transferSize])"""
    page.wait_for_load_state("networkidle")
    files = page.evaluate(transferred)

    assert {name.rsplit("/", 1)[-1] for name, _size in files} >= {"frame.js", "dark.css", "datasets.css"}
    assert [name for name, size in files if size] == []


def test_slider_is_drawn_in_the_colours_of_the_theme(open_as, olga):
    page = open_as(olga, dark=True)
    page.goto("/styleguide/")

    track = page.evaluate("""() => {
      const slider = document.body.appendChild(Object.assign(document.createElement("input"), { type: "range" }));
      const style = getComputedStyle(slider);
      return [style.appearance, style.backgroundColor];
    }""")

    assert track == ["none", "rgba(0, 0, 0, 0)"]

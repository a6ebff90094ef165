"""Keys of the annotator, changed in the list of keys by keyboard alone, and kept with the person."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.hands import Hands, stored


def test_annotator_keys_are_changed_swapped_and_reset_without_a_mouse(hands, alice, open_as, accessible):
    page = hands.page
    said = page.locator(".annotator-help-said")

    def change(act: str, key: str) -> None:
        page.locator(f"[data-key='{act} 0']").focus()
        hands.press("Enter", key)

    hands.press("?")
    change("box", "q")
    expect(said).to_contain_text("Q now does: Box")
    change("polygon", "q")
    expect(page.get_by_role("alert").get_by_text("Q already does “Box: drag")).to_contain_text("P does “Box: drag")
    accessible(page)
    hands.press("Enter")  # the focus is on "Swap"
    expect(said).to_contain_text("Q now does: Polygon")
    change("box", "Escape")
    expect(said).to_contain_text("Unchanged.")
    hands.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Box", exact=True)).to_have_attribute("title", "Box (P)")

    later = Hands(open_as(alice, language="zh-CN"), hands.work)
    later.press("p")
    later.drag(2, 2, 12, 12)
    later.saved()
    assert stored() == [("bbox", 100)]
    later.press("F1")
    later.page.get_by_role("button", name="重置所有快捷键").press("Enter")
    expect(later.page.locator("[data-key='box 0']")).to_have_text("R")
    alice.refresh_from_db()
    assert alice.annotator_keys == {}

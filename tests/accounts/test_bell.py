"""The bell: how many are unread, what came since, and the list of the last few."""

from __future__ import annotations

from accounts.services import notify
from aiplatform.lib.wording import verbatim


def test_bell_tells_scripts_what_came_after_a_number_and_nobody_elses(alice, bob, as_alice):
    first = notify.notify(alice, "finished", title=verbatim("One"), url="/training/1/", key="a")
    notify.notify(bob, "finished", title=verbatim("Of Bob"), key="b")
    notify.notify(alice, "failed", title=verbatim("Two"), text=verbatim("It ran out of memory."), key="c")

    begun = as_alice.get("/notifications/bell/").json()
    after = as_alice.get(f"/notifications/bell/?after={first.pk}").json()

    assert (begun["unread"], begun["news"]) == (2, [])
    assert begun["label"] == "2 unread notifications"
    assert [news["title"] for news in after["news"]] == ["Two"]
    assert after["news"][0]["text"] == "It ran out of memory."
    assert as_alice.get(f"/notifications/bell/?after={after['newest']}").json()["news"] == []
    assert as_alice.get("/notifications/bell/?after=nonsense").json()["news"] == []


def test_pages_name_the_newest_unread_notification(alice, bob, as_alice):
    empty = as_alice.get("/account/").content.decode()
    first = notify.notify(alice, "finished", title=verbatim("One"), key="a")
    second = notify.notify(alice, "finished", title=verbatim("Two"), key="b")
    notify.notify(bob, "finished", title=verbatim("Of Bob"), key="c")

    two = as_alice.get("/account/").content.decode()
    notify.mark_read(user=alice, pk=second.pk)
    one = as_alice.get("/account/").content.decode()

    assert 'data-unread="0" data-newest="0"' in empty
    assert f'data-unread="2" data-newest="{second.pk}"' in two
    assert f'data-unread="1" data-newest="{first.pk}"' in one


def test_bell_list_shows_the_last_five_and_marks_all_as_read(alice, as_alice):
    for n in range(7):
        notify.notify(alice, "finished", title=verbatim(f"News {n}"), key=str(n))
    htmx = {"HX-Request": "true"}

    part = as_alice.get("/notifications/bell/", headers=htmx).content.decode()

    assert "</html>" not in part
    assert [f"News {n}" in part for n in range(7)] == [False, False, True, True, True, True, True]
    assert "Mark all as read" in part
    assert "Mark all as read" not in as_alice.post("/notifications/read/", headers=htmx).content.decode()
    assert notify.unread(alice) == 0

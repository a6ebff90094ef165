"""Acts of the audit trail as sentences, with links to who did them and what they were done to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Model
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from accounts.access import clusters, sharing
from accounts.models import Role, User, UserGroup
from accounts.presentation import audit_facts
from aiplatform.lib.registry import Registry
from aiplatform.lib.wording import WORDINGS


@dataclass(frozen=True)
class Page:
    """Where rows of a kind have a page of their own."""

    model: type[Model]
    route: str  # its name; takes the row's number


PAGES: Registry[Page] = Registry("kind of thing that acts are done to", name=lambda page: page.model._meta.label_lower)


register = PAGES.register  # other apps call it from AppConfig.ready(); what can be shared is known already
register(Page(User, "accounts:person"), Page(UserGroup, "accounts:group"), Page(Role, "accounts:role"))


#: Actions of visitors who have not signed in; all others without an actor are the platform's own.
VISITOR_ACTIONS = {"sign_in_failed", "locked_out", "identity_refused", "token_unknown", "denied", "ssh_refused"}
#: Actions whose object may be a user whom the platform does not know.
USER_ACTIONS = {"sign_in_failed", "locked_out", "identity_refused"}
_OBJECT = "\x00"  # where a label names the object; no fact contains a control character


def add_display(entries: Iterable[Any], *, reader: User) -> None:
    """Add to each entry what `accounts/_act.html` shows; a url is "" if the reader sees no such page any more."""
    rows = list(entries)
    wanted: dict[str, set[int]] = {"accounts.user": {row.actor_id for row in rows if row.actor_id}}
    for row in rows:
        if row.target_id.isdecimal():
            wanted.setdefault(row.target_kind, set()).add(int(row.target_id))
    urls = {kind: _urls(kind, numbers, reader) for kind, numbers in wanted.items() if numbers}
    names = dict(clusters.choices()) if any("clusters" in row.facts for row in rows) else {}
    for row in rows:
        row.who = row.actor or (_("Anonymous") if row.verb in VISITOR_ACTIONS else pgettext("actor", "System"))
        row.who_url = urls.get("accounts.user", {}).get(row.actor_id or 0, "")
        number = int(row.target_id) if row.target_id.isdecimal() else 0
        row.what_url = urls.get(row.target_kind, {}).get(number, "")
        itself = bool(row.actor) and row.target_kind == "accounts.user" and number == row.actor_id
        _add_words(row, _with_names(row.facts, names), itself=itself)


def _add_words(row: Any, facts: dict[str, Any], *, itself: bool) -> None:
    """Add the text before the object, the object ("" if the text names it) and the text after it, and other facts.

    Args:
        itself: the actor is the object.
    """
    wording = WORDINGS.find(f"audit_own.{row.verb}") if itself else None
    row.what = "" if wording else row.target or (_("an unknown user") if row.verb in USER_ACTIONS else "")
    wording = wording or WORDINGS.find(f"audit.{row.verb}")
    text = wording.format(facts | {"object": _OBJECT}) if wording else row.verb.replace("_", " ")
    row.before, separator, row.after = text.partition(_OBJECT)
    if not separator and not row.before.endswith("："):
        row.before += " "
    used = wording.facts if wording else ()
    row.told = audit_facts.to_texts({name: value for name, value in facts.items() if name not in used})


def sentence(row: Any) -> str:
    """Return an entry with `add_display` as text: "anna changed the role viewer"."""
    return f"{row.who} {row.before}{row.what}{row.after}".strip()


def _urls(kind: str, numbers: set[int], reader: User) -> dict[int, str]:
    """Return addresses of the existing rows that the reader may see."""
    page = PAGES.find(kind)
    if page is None:
        shared = next((kind_ for kind_ in sharing.KINDS if kind_.model._meta.label_lower == kind), None)
        if shared is None:
            return {}
        rows: Any = shared.model._default_manager
        return {row.pk: shared.url(row) for row in rows.visible_to(reader).filter(pk__in=numbers)}
    rows = page.model._default_manager
    visible = rows.visible_to(reader).filter(pk__in=numbers).values_list("pk", flat=True)
    return {number: reverse(page.route, args=[number]) for number in visible}


def _with_names(facts: dict[str, Any], names: dict[int, str]) -> dict[str, Any]:
    """Return the facts with clusters by name; deleted ones by their number."""
    numbers = facts.get("clusters")
    if not isinstance(numbers, list):
        return facts
    return facts | {
        "clusters": [names.get(number, f"#{number}") if isinstance(number, int) else number for number in numbers]
    }

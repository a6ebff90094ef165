"""The audit trail: each sign-in, refusal and administrative act is a row, written in the act's transaction.

Refusals of requests are written without waiting for the database, see `record_refusal`.
Other apps call `record` from the service that does the act and name their verbs once with `register_verbs`.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import DEFAULT_DB_ALIAS
from django.db.models import Model
from django.utils.translation import gettext_lazy as _

from accounts.models import AuditEntry, User
from aiplatform.lib import files, stamps, wording
from aiplatform.lib.enqueue import enqueue

_CONTROL = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]+")
log = logging.getLogger(__name__)
MAX_DEFERRED = 10_000  # entries that wait as files
#: Columns of an entry that a worker writes later, besides its time.
_DEFERRED = ("actor_id", "actor", "behind", "verb", "target", "facts", "address", "request_id")
_SECRET = re.compile(r"password|secret|token|digest|private", re.IGNORECASE)


#: Add actions: name → label, lazily translated. Other apps call it from AppConfig.ready(). A label may contain facts
#: and %(object)s; without the latter the object follows it.
register_verbs = partial(wording.register, "audit")
#: Add the labels of actions of users on their own account.
register_own_verbs = partial(wording.register, "audit_own")


class _Ellipses(dict[str, str]):
    """Facts of no entry: "…" for each."""

    def get(self, name: str, default: object = None) -> Any:
        return "…"


def label_of(verb: str) -> str:
    """Return the label of the action, with “…” for the object and facts; its name if no app registered it."""
    label = wording.WORDINGS.find(f"audit.{verb}")
    return label.format(_Ellipses()) if label else verb.replace("_", " ")


def verb_choices() -> list[tuple[str, str]]:
    """Return the registered actions with their labels, by label."""
    names = [code.removeprefix("audit.") for code in wording.WORDINGS.codes() if code.startswith("audit.")]
    return sorted(((name, label_of(name)) for name in names), key=lambda choice: choice[1])


register_verbs(
    {
        "signed_in": _("signed in"),
        "signed_out": _("signed out"),
        "sign_in_failed": _("failed to sign in as"),
        "locked_out": _("was locked out after too many failed attempts as"),
        "token_unknown": _("used an unknown API token at"),
        "identity_linked": _("linked an external sign-in to"),
        "identity_refused": _("was denied an external sign-in as"),
        "denied": _("was denied access to"),
        "registered": _("requested an account"),
        "account_approved": _("approved the account"),
        "account_made": _("created the account"),
        "account_changed": _("changed details of"),
        "account_enabled": _("enabled the account"),
        "account_disabled": _("disabled the account"),
        "account_deleted": _("deleted the account"),
        "accounts_imported": _("created accounts from a file"),
        "rights_changed": _("changed the permissions of"),
        "clusters_of_person_changed": _("changed the clusters of"),
        "password_changed": _("changed the password of"),
        "password_link_made": _("created a password link for"),
        "role_made": _("created the role"),
        "role_changed": _("changed the role"),
        "role_deleted": _("deleted the role"),
        "group_made": _("created the group"),
        "group_changed": _("changed the group"),
        "group_deleted": _("deleted the group"),
        "token_issued": _("created an API token for"),
        "device_denied": _("denied the sign-in of a program as"),
        "token_revoked": _("revoked an API token of"),
        "service_key_issued": _("created an API key of"),
        "service_key_revoked": _("revoked an API key of"),
        "session_ended": _("ended a session of"),
        "key_added": _("added an SSH key for"),
        "key_removed": _("removed an SSH key of"),
        "secret_added": _("stored the secret %(name)s of %(object)s"),
        "secret_replaced": _("replaced the secret %(name)s of %(object)s"),
        "secret_deleted": _("deleted the secret %(name)s of %(object)s"),
        "second_factor_on": _("enabled the second factor for"),
        "second_factor_off": _("disabled the second factor for"),
        "root_allowed": _("allowed root in the sandbox for"),
        "root_revoked": _("no longer allows root in the sandbox for"),
        "root_switched_on": _("enabled root in the sandbox for"),
        "root_switched_off": _("disabled root in the sandbox for"),
        "recovery_code_used": _("signed in with a recovery code"),
        "takeover_began": _("started impersonating"),
        "takeover_ended": _("stopped impersonating"),
        "shared": _("shared"),
        "unshared": _("stopped sharing"),
        "transferred": _("transferred all objects of"),
        "settings_changed": _("changed the sign-in settings:"),
        "trail_exported": _("exported the audit log"),
    }
)
register_own_verbs(
    {
        "signed_in": _("signed in"),
        "signed_out": _("signed out"),
        "recovery_code_used": _("signed in with a recovery code"),
        "registered": _("requested an account"),
        "identity_linked": _("linked an external sign-in to their own account"),
        "account_changed": _("changed their own details"),
        "rights_changed": _("changed their own permissions"),
        "clusters_of_person_changed": _("changed their own clusters"),
        "password_changed": _("changed their own password"),
        "password_link_made": _("created a password link for their own account"),
        "token_issued": _("created their own API token %(name)s"),
        "token_revoked": _("revoked their own API token %(name)s"),
        "session_ended": _("ended a session of their own"),
        "key_added": _("added their own SSH key %(name)s"),
        "key_removed": _("removed their own SSH key %(name)s"),
        "secret_added": _("stored their own secret %(name)s"),
        "secret_replaced": _("replaced their own secret %(name)s"),
        "secret_deleted": _("deleted their own secret %(name)s"),
        "second_factor_on": _("enabled their own second factor"),
        "second_factor_off": _("disabled their own second factor"),
        "root_allowed": _("allowed root in the sandbox for their own account"),
        "root_revoked": _("no longer allows root in the sandbox for their own account"),
        "root_switched_on": _("enabled root in the sandbox for their own jobs"),
        "root_switched_off": _("disabled root in the sandbox for their own jobs"),
        "transferred": _("transferred all of their own objects"),
    }
)


@dataclass(frozen=True)
class Origin:
    """Where the current act comes from; empty outside of a request."""

    address: str = ""
    request_id: str = ""
    behind: str = ""  # username of the administrator who took the account over


_origin: ContextVar[Origin] = ContextVar("audit_origin", default=Origin())  # noqa: B039 - frozen


@contextmanager
def with_origin(origin: Origin) -> Iterator[None]:
    """Give every `record` of the block this origin."""
    mark = _origin.set(origin)
    try:
        yield
    finally:
        _origin.reset(mark)


def _line(text: object, length: int) -> str:
    """Remove control characters, so that a name cannot forge another entry."""
    return _CONTROL.sub(" ", str(text))[:length]


def _fact(value: Any, depth: int = 0) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping) and depth < 3:
        return {_line(key, 50): _fact(item, depth + 1) for key, item in list(value.items())[:100]}
    if isinstance(value, list | tuple | set | frozenset) and depth < 3:
        return [_fact(item, depth + 1) for item in list(value)[:200]]
    return _line(value, 500)


def record(
    actor: User | AnonymousUser | None, verb: str, target: Model | str | None = None, /, **facts: Any
) -> AuditEntry:
    """Add one act to the trail.

    Args:
        actor: who did it; None or an anonymous user for a stranger or the platform itself.
        verb: a short word in the past tense, see `register_verbs`; scripts match on it.
        target: the row it was done to, or its name. Rows are named by number and word, not referred to.
        facts: what else a reader wants to know, as plain JSON; values of names like "password" are left out.
    """
    entry = _entry(actor, verb, target, facts)
    entry.save(force_insert=True)
    return entry


def record_refusal(actor: User | None, verb: str, target: str, /, **facts: Any) -> None:
    """Add a refused request to the trail without waiting for a database lock.

    A refused request may be a read, and a read never waits for a writer. Where a lock is held, the entry becomes a
    file with the time of the refusal, which a worker writes to the database later.
    """
    entry = _entry(actor, verb, target, facts)
    if not stamps.write_at_once(DEFAULT_DB_ALIAS, lambda: entry.save(force_insert=True), "audit"):
        _defer(entry)
        enqueue("accounts.write_deferred_audit_entries")


def _defer(entry: AuditEntry) -> None:
    folder = _deferred_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if sum(1 for _file in folder.iterdir()) >= MAX_DEFERRED:
        log.warning("audit verb=%s target=%s dropped: %s entries wait", entry.verb, entry.target, MAX_DEFERRED)
        return
    values = {name: getattr(entry, name) for name in _DEFERRED}
    files.write_json(folder / f"{uuid4().hex}.json", {"at": entry.at.isoformat(), **values})


def write_deferred() -> None:
    """Write entries that refusals left as files, each once. A file that is unreadable is removed and logged."""
    for path in sorted(_deferred_folder().glob("*.json")):
        try:
            values = json.loads(path.read_bytes())
            moment = datetime.fromisoformat(values["at"])
            named = {name: values[name] for name in _DEFERRED}
        except FileNotFoundError:  # another worker wrote it
            continue
        except (ValueError, KeyError, TypeError):
            log.exception("audit file=%s is unreadable and removed", path.name)
            path.unlink(missing_ok=True)
            continue
        if not AuditEntry.objects.filter(at=moment, **named).exists():
            AuditEntry.objects.create(at=moment, **named)
        path.unlink(missing_ok=True)


def _deferred_folder() -> Path:
    return Path(settings.DATA_ROOT) / "spool" / "audit"


def _entry(
    actor: User | AnonymousUser | None, verb: str, target: Model | str | None, facts: Mapping[str, Any]
) -> AuditEntry:
    """An entry that is not saved yet."""
    kind = number = ""
    if isinstance(target, Model):
        kind, number = target._meta.label_lower, str(target.pk)
        name = target.username if isinstance(target, User) else str(target)
    else:
        name = target or ""
    origin = _origin.get()
    is_user = isinstance(actor, User)
    return AuditEntry(
        actor_id=actor.pk if is_user and actor is not None else None,
        actor=_line(actor.username, 100) if isinstance(actor, User) else "",
        behind=_line(origin.behind, 100),
        verb=verb[:50],
        target_kind=kind[:50],
        target_id=number[:50],
        target=_line(name, 200),
        facts={key: _fact(value) for key, value in facts.items() if not _SECRET.search(key)},
        address=_line(origin.address, 45),
        request_id=_line(origin.request_id, 64),
    )

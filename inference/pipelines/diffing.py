"""What differs between two specifications, step by step: as data, and in words for people."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

HIDDEN = "••••"
_MAX_SHOWN_LENGTH = 200  # characters of a value in words
_MAX_DEPTH = 40
_SECRET_WORD = re.compile(r"passw|secret|token|credential|authorization|api_?key|private_?key|cookie", re.IGNORECASE)
_OPTIONS = ("when", "after", "each", "retries", "rule", "tolerate", "note")


class What(StrEnum):
    """What became of a step or of one of its parts."""

    ADDED = "added"
    REMOVED = "removed"
    RENAMED = "renamed"
    KIND = "kind"
    PARAMETER = "parameter"  # a value in `with`
    REWIRED = "rewired"  # an input in `from`
    OPTION = "option"  # when, after, each, retries …
    DEFAULT = "default"  # a parameter of the whole pipeline


@dataclass(frozen=True, slots=True)
class Change:
    """One difference.

    Attributes:
        step: the step's name in the newer one, in the older one where it was removed; empty for the whole pipeline.
        name: parameter, input or option; of a renamed step its former name; of an added or removed one its kind.
        before: what was there, None where nothing was; never a secret.
        after: what is there now.
    """

    what: What
    step: str
    name: str = ""
    before: Any = None
    after: Any = None

    def as_json(self) -> dict[str, Any]:
        return {
            "what": self.what.value,
            "step": self.step,
            "name": self.name,
            "before": self.before,
            "after": self.after,
        }


def looks_secret(_kind: str, name: str) -> bool:
    """Whether a parameter's name indicates a secret, regardless of its kind."""
    return bool(_SECRET_WORD.search(name))


def diff(
    old: Mapping[str, Any], new: Mapping[str, Any], secret: Callable[[str, str], bool] = looks_secret
) -> list[Change]:
    """Return what differs between two canonical specifications: of the pipeline first, then by the name of steps.

    Args:
        secret: whether a parameter (kind of step, name) is a secret; those whose names look like one always are.
    """
    before, after = _steps(old), _steps(new)
    renamed = renames(old, new)
    new_names = {name: step for step, name in renamed.items()}  # former name → name
    changes = list(_defaults(old, new))
    added, removed = after.keys() - before.keys() - renamed.keys(), before.keys() - after.keys() - new_names.keys()
    step_changes = [Change(What.ADDED, step, str(after[step].get("kind", ""))) for step in sorted(added)]
    step_changes += [Change(What.REMOVED, step, str(before[step].get("kind", ""))) for step in sorted(removed)]
    step_changes += [Change(What.RENAMED, step, name, name, step) for step, name in sorted(renamed.items())]
    for step in sorted(before.keys() & after.keys()):
        step_changes += _within(step, _renamed_inside(before[step], new_names), after[step], secret)
    return changes + sorted(step_changes, key=lambda change: change.step)


def renames(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, str]:
    """Return name → former name of steps that are the same under another name: same content, fed by the same steps."""
    before, after = _steps(old), _steps(new)
    gone = [step for step in ordered(before) if step not in after]
    fresh: dict[str, list[str]] = {}
    for step in sorted(after.keys() - before.keys(), reverse=True):
        fresh.setdefault(_content(after[step]), []).append(step)
    now: dict[str, str] = {}
    for step in gone:
        # those before it have been found already, so its links are read with their newer names
        same = fresh.get(_content(_renamed_inside(before[step], now)))
        if same:
            now[step] = same.pop()
    return {name: former for former, name in now.items()}


TEXTS = {
    What.ADDED: gettext_lazy("%(step)s was added (%(kind)s)."),
    What.REMOVED: gettext_lazy("%(step)s was removed (%(kind)s)."),
    What.RENAMED: gettext_lazy("%(name)s was renamed to %(step)s."),
    What.KIND: gettext_lazy("The kind of %(step)s changed from %(before)s to %(after)s."),
    What.REWIRED: gettext_lazy("%(step)s uses %(name)s from %(after)s instead of %(before)s."),
    What.DEFAULT: gettext_lazy("Pipeline parameter %(name)s: %(before)s → %(after)s."),
}


def to_sentence(change: Change) -> str:
    """Return a difference as a sentence for users."""
    text = TEXTS.get(change.what) or gettext_lazy("%(step)s, %(name)s: %(before)s → %(after)s.")
    values = {"before": shown(change.before), "after": shown(change.after)}
    return str(text % ({"step": change.step, "name": change.name, "kind": change.name} | values))


def shown(value: Any) -> str:
    """A value in a sentence."""
    if value is None:
        return _("nothing")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= _MAX_SHOWN_LENGTH else text[: _MAX_SHOWN_LENGTH - 1] + "…"


def _steps(spec: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    return spec.get("steps") or {}


def _content(step: Mapping[str, Any]) -> str:
    return json.dumps(step, ensure_ascii=False, sort_keys=True)


def ordered(steps: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the names of steps after those that they need; those in a cycle last, by name."""
    remaining = {name: {source for source in sources(step) if source in steps} for name, step in steps.items()}
    followers: dict[str, list[str]] = {}
    for name, needed in remaining.items():
        for source in needed:
            followers.setdefault(source, []).append(name)
    ready, done = sorted(name for name, needed in remaining.items() if not needed), list[str]()
    while ready:
        done += ready
        following = []
        for name in ready:
            for follower in followers.get(name, ()):
                remaining[follower].discard(name)
                if not remaining[follower]:
                    following.append(follower)
        ready = sorted(following)
    return done + sorted(steps.keys() - set(done))


def sources(step: Mapping[str, Any]) -> set[str]:
    """Return the names of the steps that a step of a specification waits for; invalid links are left out."""
    inputs, after = step.get("from"), step.get("after")
    links: list[Any] = [step.get("when"), step.get("each")]
    for value in inputs.values() if isinstance(inputs, Mapping) else ():
        links += value if isinstance(value, list) else [value]
    names = [link.partition(".")[0] for link in links if isinstance(link, str)]
    return {*names, *(name for name in (after if isinstance(after, list) else ()) if isinstance(name, str))}


def _renamed_inside(step: Mapping[str, Any], new_names: Mapping[str, str]) -> dict[str, Any]:
    """Return a step whose links use the new names of the steps they come from."""

    def link(value: Any) -> Any:
        if isinstance(value, list):
            return [link(item) for item in value]
        name, dot, port = str(value).partition(".")
        return f"{new_names.get(name, name)}{dot}{port}"

    renamed = dict(step)
    if isinstance(step.get("from"), Mapping):
        renamed["from"] = {port: link(value) for port, value in step["from"].items()}
    for name in ("when", "each"):
        if step.get(name):
            renamed[name] = link(step[name])
    if isinstance(step.get("after"), list):
        renamed["after"] = sorted(new_names.get(name, name) for name in map(str, step["after"]))
    return renamed


def _defaults(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    before, after = old.get("parameters") or {}, new.get("parameters") or {}
    for name in sorted(before.keys() | after.keys()):
        first, second = before.get(name, {}), after.get(name, {})
        if (name in before) != (name in after) or not _same(first, second, "default"):
            was, became = first.get("default"), second.get("default")
            if looks_secret("", name):
                was, became = was and HIDDEN, became and HIDDEN
            yield Change(What.DEFAULT, "", name, masked(was), masked(became))
        if not _same(first, second, "note"):
            yield Change(What.DEFAULT, "", f"{name}.note", first.get("note"), second.get("note"))


def _within(
    step: str, before: Mapping[str, Any], after: Mapping[str, Any], secret: Callable[[str, str], bool]
) -> Iterator[Change]:
    if before.get("kind") != after.get("kind"):
        yield Change(What.KIND, step, "kind", before.get("kind"), after.get("kind"))
    kind = str(after.get("kind", ""))
    for part, what in (("with", What.PARAMETER), ("from", What.REWIRED)):
        was, became = before.get(part) or {}, after.get(part) or {}
        for name in sorted(was.keys() | became.keys()):
            if _same(was, became, name):
                continue
            first, second = was.get(name), became.get(name)
            if part == "with" and (secret(kind, name) or looks_secret(kind, name)):
                first, second = first and HIDDEN, second and HIDDEN
            yield Change(what, step, name, masked(first), masked(second))
    for name in _OPTIONS:
        if not _same(before, after, name):
            yield Change(What.OPTION, step, name, before.get(name), after.get(name))


def _same(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> bool:
    """Whether both have the same under a name; 1, 1.0 and true are not the same."""
    if (name in before) != (name in after):
        return False
    return json.dumps(before.get(name), sort_keys=True) == json.dumps(after.get(name), sort_keys=True)


def masked(value: Any, depth: int = 0) -> Any:
    """Return a value without secrets in its inner parts, such as a header named Authorization."""
    if depth > _MAX_DEPTH:
        return "…"
    if isinstance(value, Mapping):
        return {
            name: HIDDEN if item and looks_secret("", str(name)) else masked(item, depth + 1)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [masked(item, depth + 1) for item in value]
    return value

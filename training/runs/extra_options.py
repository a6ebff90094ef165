"""Additional parameters as one line: `-gpu:0,1,2 -hint:text -CloseDelay:s -keep:ms -ShowStep -NoStep -ShowBatch`.

Pure: text in, typed fields out. Other switches are refused with the list, so that nobody reaches
what was not meant for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib.errors import DomainError

MAX_CLOSE_DELAY_S = 600
MAX_RETENTION_MS = 60_000
MAX_HINT = 200
SHOW_BATCH = "-ShowBatch"


class BadSwitch(DomainError, code="bad_switch", status=400, field="extra"): ...


@dataclass(frozen=True)
class Switch:
    """One switch: how it is written and what it does."""

    written: str
    means: str


def list_switches() -> list[Switch]:
    """Return the table of switches that is shown at the field."""
    return [
        Switch("-gpu:0,1,2", _("number of GPUs; the scheduler chooses free ones")),
        Switch("-hint:text", _("a log line five seconds before the run")),
        Switch("-CloseDelay:5", _("seconds to wait at the end of the run")),
        Switch("-keep:500", _("milliseconds to wait after each step, to leave the GPU to other jobs")),
        Switch("-ShowStep", _("print every step")),
        Switch("-NoStep", _("print no steps")),
        Switch(SHOW_BATCH, _("preview only: show the model input of a preset and the time per epoch")),
    ]


def parse(line: str, *, card_ids: Sequence[int] | None = None) -> dict[str, Any]:
    """Read the line into {"gpu", "hint", "close_delay_s", "keep_ms", "show_step", "no_step", "show_batch"}.

    Args:
        card_ids: ids of the cards that exist on a machine; None leaves them unchecked.

    Raises:
        BadSwitch: unknown, given twice, or a value out of bounds; the sentence lists what exists.
    """
    switches: dict[str, Any] = {}
    for name, raw in _switches(line):
        reader = READERS.get(name.lower())
        if reader is None:
            every = ", ".join(switch.written for switch in list_switches())
            raise BadSwitch(
                _("Unknown switch -%(name)s. Available switches: %(every)s.") % {"name": name[:30], "every": every}
            )
        key, value = reader(raw, card_ids)
        if key in switches:
            raise BadSwitch(_("Duplicate switch -%(name)s.") % {"name": name})
        switches[key] = value
    if switches.get("show_step") and switches.get("no_step"):
        raise BadSwitch(_("-ShowStep and -NoStep cannot be combined."))
    return switches


def written(extra: dict[str, Any]) -> str:
    """The line that `parse` reads into `extra`."""
    parts = []
    if "gpu" in extra:
        parts.append("-gpu:" + ",".join(str(card) for card in extra["gpu"]))
    if "hint" in extra:
        parts.append(f"-hint:{extra['hint']}")
    if "close_delay_s" in extra:
        parts.append(f"-CloseDelay:{extra['close_delay_s']}")
    if "keep_ms" in extra:
        parts.append(f"-keep:{extra['keep_ms']}")
    flags = (("show_step", "-ShowStep"), ("no_step", "-NoStep"), ("show_batch", SHOW_BATCH))
    parts += [word for key, word in flags if extra.get(key)]
    return " ".join(parts)


def _switches(line: str) -> list[tuple[str, str | None]]:
    """Split before each `-word`; a hint may hold spaces, so words without a dash belong to what came before."""
    line = line.strip()
    if not line:
        return []
    parts = [part.strip() for part in re.split(r"(?:(?<=\s)|^)(?=-[A-Za-z])", line) if part.strip()]
    if not parts[0].startswith("-"):
        raise BadSwitch(_("“%(text)s” is not an option: options start with a dash.") % {"text": parts[0][:30]})
    split: list[tuple[str, str | None]] = []
    for part in parts:
        name, colon, value = part[1:].partition(":")
        split.append((name, value.strip() if colon else None))
    return split


def _number(name: str, raw: str | None, limit: int) -> int:
    if raw is None or not re.fullmatch(r"\d{1,9}", raw) or int(raw) > limit:
        raise BadSwitch(
            _("-%(name)s requires an integer from 0 to %(limit)s, such as -%(name)s:5.")
            % {"name": name, "limit": limit}
        )
    return int(raw)


def _gpu(raw: str | None, card_ids: Sequence[int] | None) -> tuple[str, Any]:
    exist = _("The GPUs are %(ids)s.") % {"ids": ", ".join(map(str, card_ids))} if card_ids else ""
    if raw is None or not re.fullmatch(r"\d{1,4}(?:,\d{1,4}){0,127}", raw):
        raise BadSwitch(f"{_('-gpu takes ids of cards separated by commas, as in -gpu:0,1.')} {exist}".strip())
    ids = [int(part) for part in raw.split(",")]
    if len(set(ids)) != len(ids):
        raise BadSwitch(f"{_('-gpu names a card twice.')} {exist}".strip())
    if card_ids is not None:
        absent = [card for card in ids if card not in card_ids]
        if absent:
            no_cards = _("No node of the cluster has GPUs: omit -gpu to train on CPUs.")
            missing = _("GPU %(ids)s does not exist.") % {"ids": ", ".join(map(str, absent))}
            raise BadSwitch(f"{missing} {exist or no_cards}", ids=absent, exist=list(card_ids))
    return "gpu", ids


def _hint(raw: str | None, _ids: Sequence[int] | None) -> tuple[str, Any]:
    if not raw or len(raw) > MAX_HINT or not raw.isprintable():
        raise BadSwitch(_("-hint accepts at most %(limit)s characters.") % {"limit": MAX_HINT})
    return "hint", raw


def _flag(key: str, name: str) -> Callable[[str | None, Sequence[int] | None], tuple[str, Any]]:
    def read(raw: str | None, _ids: Sequence[int] | None) -> tuple[str, Any]:
        if raw is not None:
            raise BadSwitch(_("-%(name)s does not accept a value.") % {"name": name})
        return key, True

    return read


READERS: dict[str, Callable[[str | None, Sequence[int] | None], tuple[str, Any]]] = {
    "gpu": _gpu,
    "hint": _hint,
    "closedelay": lambda raw, _ids: ("close_delay_s", _number("CloseDelay", raw, MAX_CLOSE_DELAY_S)),
    "keep": lambda raw, _ids: ("keep_ms", _number("keep", raw, MAX_RETENTION_MS)),
    "showstep": _flag("show_step", "ShowStep"),
    "nostep": _flag("no_step", "NoStep"),
    "showbatch": _flag("show_batch", "ShowBatch"),
}

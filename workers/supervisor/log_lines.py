"""Lines of the platform's own in a job's log: a tag, a code and facts. Who shows them says them in people's language.

    [image] layers number=2 bytes=23908352

A program may print such a line as well: the tag says what a line is about, it proves nothing. What counts is the
exit record.
"""

import json
import re

PHASES = ("environment", "network", "variables", "image", "command", "program")
"""In the order in which they come. What the program prints has no tag and belongs to the last one."""
ENVIRONMENT, NETWORK, VARIABLES, IMAGE, COMMAND, PROGRAM = PHASES

CODES: "dict[str, dict[str, tuple[str, ...]]]" = {
    ENVIRONMENT: {
        "attempt": ("number",),
        "retry": ("number", "most"),
        "machine": ("node", "rank", "nodes", "devices"),
        "sandbox": ("tier",),
        "resumes": ("checkpoint",),
        "not_limited": (),
        "not_reachable": ("why",),
    },
    NETWORK: {
        "own": (),
        "own_with_proxy": (),
        "host": (),
        "port": ("port",),
        "meeting": ("address", "port"),
    },
    VARIABLES: {"given": ("number", "secret")},
    IMAGE: {
        "platform": (),
        "container": ("name",),
        "fetching": ("name", "done", "total"),  # bytes; a total of 0 is not known yet
        "layer": ("number", "of", "bytes", "seconds"),
        "engine": ("layers",),
        "packages": (),
    },
    COMMAND: {"line": ("argv",), "not_started": ("program", "why")},
    PROGRAM: {
        "exited": ("code", "seconds"),
        "signalled": ("signal", "seconds"),
        "over_time": ("seconds",),
        "over_memory": ("limit_bytes", "held_bytes"),
        "over_disk": ("limit_bytes", "used_bytes"),
        "disk_was_full": ("seconds",),
        "cut": ("bytes",),
        "stays_on_cards": ("why",),
        "stranded": ("why",),
        "withheld": (),
        "engine_away": (),
        "engine_restarted": (),
        "engine_silent": (),
        "unknown_end": ("why",),
        "lost": (),
        "again": ("seconds", "number", "most"),
        "starts_again": ("seconds",),
    },
}
"""By phase and code: the facts that stand in the line, in this order. Scripts and translations know them by these."""

_LINE = re.compile(r"\[([a-z]+)\] ([a-z_]+)((?: [a-z_]+=(?:\"(?:[^\"\\]|\\.)*\"|[^\s\"]+))*)\Z")
_FACT = re.compile(r" ([a-z_]+)=(\"(?:[^\"\\]|\\.)*\"|[^\s\"]+)")
_PLAIN = re.compile(r"[^\s\"\\]+\Z")
MAX_FACT_LENGTH = 2000  # letters; a command line may be very long


def line(phase: str, code: str, /, **facts: object) -> str:
    """Return the line for `code` of a phase, without its end.

    Raises:
        KeyError: there is no such code, or a fact of it is missing.
    """
    parts = [f"[{phase}] {code}"]
    parts += [f"{name}={_written(facts[name])}" for name in CODES[phase][code]]
    return " ".join(parts)


def read(text: str) -> "tuple[str, str, dict[str, str]] | None":
    """Return phase, code and facts of a line of ours; None for a program's output."""
    if not text.startswith("["):
        return None
    match = _LINE.match(text)
    if match is None:
        return None
    phase, code, rest = match.groups()
    facts = {name: _read(value) for name, value in _FACT.findall(rest)}
    return (phase, code, facts) if CODES.get(phase, {}).get(code) == tuple(facts) else None


def phase_of(text: str) -> str:
    """Return the phase that a line of a log belongs to."""
    entry = read(text)
    return entry[0] if entry else PROGRAM


def _written(value: object) -> str:
    text = f"{value:.1f}" if isinstance(value, float) else str(value)
    text = text if len(text) <= MAX_FACT_LENGTH else text[:MAX_FACT_LENGTH] + "…"
    return text if _PLAIN.match(text) else json.dumps(text, ensure_ascii=False)


def _read(value: str) -> str:
    if not value.startswith('"'):
        return value
    try:
        return str(json.loads(value))
    except ValueError:
        return value

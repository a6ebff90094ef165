"""`python -m inference.registry.inspector`: read a request from standard input, write the reply to standard output.

Both are JSON.

As the program of a job it reads the file in AIP_PARAMS and writes inspection.json into the outputs.

Exit codes: 0 with a reply, 65 where memory did not suffice; anything else is a crash.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

OUT_OF_MEMORY = 65
REQUEST, REPLY = "AIP_PARAMS", "inspection.json"


def main() -> int:
    request, reply_to = _read_request()
    _configure(request["locale"])
    from inference.registry.inspector import inspection, limits  # noqa: PLC0415  needs the settings

    limits.restrict(seconds=request["seconds"])
    if request["ticket"]:
        _enter(request["ticket"])
    try:
        reply = inspection.perform(request)
    except MemoryError:
        return OUT_OF_MEMORY
    with os.fdopen(reply_to, "w", encoding="ascii") as out:
        json.dump(reply, out, allow_nan=False)
    return 0


def _read_request() -> tuple[dict[str, Any], int]:
    """Return the request, and the descriptor of the file that the reply is written to."""
    if REQUEST in os.environ:
        path = Path(os.environ["AIP_OUTPUT_DIR"], REPLY)
        request = json.loads(Path(os.environ[REQUEST]).read_text(encoding="utf-8"))
        return request, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    reply_to = os.dup(1)
    os.dup2(2, 1)  # libraries may print; the reply stands alone
    return json.loads(sys.stdin.buffer.read()), reply_to


def _configure(locale: str) -> None:
    """Set up translations, the only part of Django that is needed."""
    import django  # noqa: PLC0415  0.1 s of CPU, which importing OUT_OF_MEMORY does not need
    from django.conf import settings  # noqa: PLC0415  as above

    languages = [("en", "English"), ("zh-hans", "简体中文")]
    settings.configure(USE_I18N=True, LANGUAGE_CODE="en", LANGUAGES=languages, LOCALE_PATHS=[locale])
    django.setup()


def _enter(ticket: dict[str, object]) -> None:
    """Restrict this process where no bubblewrap did it before; see `sandbox.enter`."""
    from workers.supervisor import sandbox  # noqa: PLC0415  only where no bubblewrap is
    from workers.supervisor.ticket import Ticket  # noqa: PLC0415  as above

    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # Landlock takes no pipe, and /dev/stdin is among the devices it allows
    os.close(nothing)
    sandbox.enter(Ticket.from_json(ticket))


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tests.chaos.crowd FILE`: live by what FILE (JSON) says until SIGTERM, then come to rest and end."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path

from tests.chaos.crowd.town import Town


async def main(path: Path) -> None:
    town = Town(json.loads(path.read_text()))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, town.evening.set)
    await town.live()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))

"""The agent as the one file that devices get: a zip of Python that `python3 aip-edge.pyz` runs."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from aiplatform.lib import archives
from inference.delivery.edge import device

NAME = "aip-edge.pyz"
HOME = Path(device.__file__).parent
START = b'"""Begin the agent."""\n\nimport sys\n\nfrom aip_edge.cli import main\n\nsys.exit(main(sys.argv[1:]))\n'


@cache
def agent() -> bytes:
    """The bytes of the file; the same as long as the platform is the same."""
    files = sorted(path for path in HOME.glob("*.py") if path.name != "__main__.py")
    return archives.small_zip(
        [("__main__.py", START), *((f"aip_edge/{path.name}", path.read_bytes()) for path in files)]
    )

"""`python -m inference.registry.torch_archives`: read inputs/archive.pt.

Writes outputs/model, or outputs/refused.json with a code.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from inference.registry.torch_archives.archives import Refused, convert


def main() -> int:
    outputs = Path(os.environ["AIP_OUTPUT_DIR"])
    params = json.loads(Path(os.environ["AIP_PARAMS"]).read_text())
    try:
        summary = convert(Path(os.environ["AIP_ARCHIVE"]), outputs / "model", **params)
    except Refused as refused:
        (outputs / "refused.json").write_text(json.dumps({"code": refused.code, "facts": refused.facts}))
        sys.stdout.write(f"Not converted: {refused}\n")
        return 1
    sys.stdout.write(f"{summary}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

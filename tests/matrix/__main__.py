"""Write the table anew and say what changed: `python -m tests.matrix`."""

from __future__ import annotations

import os
import subprocess
import sys

if __name__ == "__main__":
    command = [sys.executable, "-m", "pytest", "-q", "-s", "tests/matrix", "-m", "proof", "-k", "write_the_table"]
    code = subprocess.run(command, env=os.environ | {"AIP_WRITE_MATRIX": "1"}, check=False).returncode
    subprocess.run(["git", "diff", "--stat", "--", "tests/matrix/table.txt"], check=False)
    raise SystemExit(code)

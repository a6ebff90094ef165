"""Write the tables anew and say what changed: `python -m tests.matrix`."""

from __future__ import annotations

import subprocess
import sys

if __name__ == "__main__":
    command = [sys.executable, "-m", "pytest", "-q", "-s", "tests/matrix/writer.py", "-m", "proof"]
    code = subprocess.run(command, check=False).returncode
    subprocess.run(["git", "diff", "--stat", "--", "tests/matrix"], check=False)
    raise SystemExit(code)

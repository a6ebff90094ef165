"""`python -I -S …/workers/supervisor/__main__.py RUN_DIR`: detach, then keep the command of that run."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # -I leaves nothing on the path but the stdlib

from workers.supervisor.daemon import main

if __name__ == "__main__":
    sys.exit(main(sys.argv))

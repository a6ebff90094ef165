"""`python -I -S …/workers/supervisor/__main__.py RUN_DIR`: detach, then keep the command of that run."""

import os
import sys

sys.path.insert(0, os.path.realpath(__file__).rsplit("/", 3)[0])  # -I leaves nothing on the path but the stdlib

from workers.supervisor.daemon import main

if __name__ == "__main__":
    sys.exit(main(sys.argv))

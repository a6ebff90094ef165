"""The fork server without the platform: the same program, whose `preload` imports nothing."""

import sys

from aiplatform.cli import fork_server

if __name__ == "__main__":
    fork_server.preload = lambda report: report("importing nothing")  # type: ignore[assignment]  # the point of this file
    sys.exit(fork_server.main(sys.argv))

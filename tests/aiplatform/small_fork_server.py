"""The fork server without the platform: the same program, whose `preload` imports nothing."""

import os
import sys
import threading
import time

from aiplatform.cli import fork_server

if __name__ == "__main__":
    if os.environ.get("AIP_TEST_THREAD"):
        threading.Thread(target=time.sleep, args=[600], daemon=True).start()
    fork_server.preload = lambda report: report("importing nothing")  # type: ignore[assignment]  # the point of this file
    sys.exit(fork_server.main(sys.argv))

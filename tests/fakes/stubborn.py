"""A program that does not end when it is told to."""

import signal
import time

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("ignores SIGTERM", flush=True)
    time.sleep(600)  # pause: until a signal

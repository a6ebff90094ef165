"""A program that does nothing until it is told to end."""

import time

if __name__ == "__main__":
    time.sleep(600)  # pause: until a signal

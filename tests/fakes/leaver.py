"""A program that ends at once with the exit code AIP_TEST_CODE."""

import os
import sys

if __name__ == "__main__":
    code = int(os.environ.get("AIP_TEST_CODE", "0"))
    print(f"leaving with {code}")
    sys.exit(code)

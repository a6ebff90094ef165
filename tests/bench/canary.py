"""A canary under load: `python -m tests.bench.canary [--callers 4]`.

A platform of its own, a service with a small detector, callers that ask it without a pause through the platform's
address. Another version gets 10 % of the requests, then 50 %, and is promoted. Printed are the requests and failures
of both versions as the platform counts them, what callers saw, and the 99th percentile before and during.
"""

from __future__ import annotations

import argparse
import time

from tests.bench.swap import CALM_S, loaded


def main() -> None:
    """Serve, ask, try, promote, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--callers", type=int, default=4)
    asked = parser.parse_args()
    with loaded(asked.callers) as site:
        from tests.journeys.up import until

        time.sleep(CALM_S)
        changing = time.monotonic()
        site.api("POST", "trial/", model_version=site.versions[1], percent=10)
        until(lambda: site.api("GET", "trials/")[0]["ready"], 120, "What is tried")
        time.sleep(CALM_S)
        site.api("PATCH", "trial/", percent=50)
        time.sleep(CALM_S)
        site.api("POST", "promote/")
        time.sleep(CALM_S)
        site.callers.over.set()
        time.sleep(3)  # until the last requests are counted
        trial = site.api("GET", "trials/")[0]
    for name in ("tried", "beside_figures"):
        print(name, {key: trial[name][key] for key in ("requests", "failed", "p50_ms", "p99_ms")})
    site.report(changing)


if __name__ == "__main__":
    main()

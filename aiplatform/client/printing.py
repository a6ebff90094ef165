"""Print a file of HTML as PDF by a Chromium of this machine, which is kept from any network."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from aiplatform.client.errors import ClientError

#: In this order; AIP_CHROMIUM names another one.
BROWSERS = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)
TIMEOUT_S = 120.0


def browser() -> str:
    """Path of the browser that prints.

    Raises:
        ClientError: this machine has none; says what to install, and the other way.
    """
    for name in (os.environ.get("AIP_CHROMIUM", ""), *BROWSERS):
        if name and (path := shutil.which(name)):
            return path
    raise ClientError(
        "PDF export needs Chromium, which is not installed. Install it (apt install chromium, or set "
        "AIP_CHROMIUM to its path), or omit --pdf and print the HTML file in any browser."
    )


def as_pdf(html: bytes, target: Path) -> None:
    """Write a page as PDF.

    Raises:
        ClientError: no browser, or it could not print.
    """
    program = browser()
    with tempfile.TemporaryDirectory(prefix="aip-report-") as folder:
        page, printed = Path(folder, "report.html"), Path(folder, "report.pdf")
        page.write_bytes(html)
        argv = [
            program, "--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking",
            "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder}/profile",
            "--no-pdf-header-footer", f"--print-to-pdf={printed}", page.as_uri(),
        ]  # fmt: skip
        if hasattr(os, "geteuid") and os.geteuid() == 0:  # its own sandbox refuses root; the page has no script
            argv.insert(1, "--no-sandbox")
        try:
            ended = subprocess.run(argv, capture_output=True, timeout=TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as exc:
            raise ClientError(f"{program} could not print the report: {exc}. Omit --pdf for the HTML.") from exc
        if not printed.exists():
            lines = ended.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no output"]
            raise ClientError(f"{program} could not print the report: {lines[0][:300]}. Omit --pdf for the HTML.")
        shutil.move(printed, target)

"""How this machine's pip finds packages, for jobs that install some: mirrors, certificates, proxies."""

from __future__ import annotations

import os
from pathlib import Path

CONFIGURATION = Path("/etc/pip.conf")
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


def variables(*, proxies: bool = True) -> dict[str, str]:
    """What of the platform's own environment tells pip where packages come from.

    Args:
        proxies: with the machine's way out; False for jobs that are given one of their own.
    """
    names = (*_CERTIFICATES, *(_PROXIES if proxies else ()))
    found = {name: value for name, value in os.environ.items() if name in names or name.startswith("PIP_")}
    return found if proxies else {name: value for name, value in found.items() if name != "PIP_PROXY"}


def files() -> list[Path]:
    """What has to be mounted for that."""
    return [CONFIGURATION] if CONFIGURATION.is_file() else []

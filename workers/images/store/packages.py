"""How this machine's pip finds packages, for jobs that install some: mirrors, certificates, proxies."""

from __future__ import annotations

import os
import stat
from pathlib import Path

CONFIGURATION = Path("/etc/pip.conf")
_CERTIFICATES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_ALL_CERTIFICATES = (*_CERTIFICATES, "SSL_CERT_DIR")
#: Where the platform's own packages would go, which is no place for a job's.
_TARGETS = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_REQUIRE_VIRTUALENV")
_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


def variables(*, proxies: bool = True, contained: bool = False) -> dict[str, str]:
    """Variables of the platform's own environment that tell pip where packages come from.

    Args:
        proxies: with the machine's way out; False for jobs that are given one of their own.
        contained: for a container, where a file is told that is mounted alone, and pip has a configuration of its own.
    """
    names = (*_ALL_CERTIFICATES, *(_PROXIES if proxies else ()))
    left_out = {*_TARGETS, *(() if proxies else ("PIP_PROXY",))}
    if contained:
        left_out |= {*_ALL_CERTIFICATES, "PIP_CERT", "PIP_CLIENT_CERT", "PIP_CONFIG_FILE"} - _certificates().keys()
    values = {name: value for name, value in os.environ.items() if name in names or name.startswith("PIP_")}
    return {name: value for name, value in values.items() if name not in left_out}


def files(*, contained: bool = False) -> list[Path]:
    """What has to be mounted for that: in a container the certificates too, which other jobs see with the machine's."""
    certificates = dict.fromkeys(_certificates().values()) if contained else {}
    return [*([CONFIGURATION] if CONFIGURATION.is_file() else []), *certificates]


def _certificates() -> dict[str, Path]:
    """Certificate files in the environment, those that are readable for everyone."""
    named = {name: Path(os.environ[name]) for name in (*_CERTIFICATES, "PIP_CERT") if os.environ.get(name)}
    return {
        name: path
        for name, path in named.items()
        if path.is_absolute() and path.is_file() and path.stat().st_mode & stat.S_IROTH
    }

"""`aip models package`."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.sockets("a platform's double")


def test_terminal_brings_a_package_of_the_newest_version(aip, platform, tmp_path):
    platform.answers("GET /api/v1/models/", {"results": [{"id": 3, "name": "cells"}], "next": None})
    platform.answers("GET /api/v1/models/3/versions/", {"results": [{"id": 9, "number": 2}], "next": None})
    platform.answers("GET /api/v1/model-versions/9/package/", b"PK package")

    assert aip("models", "package", "cells", "--to", tmp_path / "it.zip") == 0

    assert (tmp_path / "it.zip").read_bytes() == b"PK package"

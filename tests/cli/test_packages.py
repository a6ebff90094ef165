"""`aip models package` and `aip models torch`."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.sockets("a platform's double")


def test_terminal_brings_a_package_of_the_newest_version(aip, platform, tmp_path):
    platform.answers("GET /api/v1/models/", {"results": [{"id": 3, "name": "cells"}], "next": None})
    platform.answers("GET /api/v1/models/3/versions/", {"results": [{"id": 9, "number": 2}], "next": None})
    platform.answers("GET /api/v1/model-versions/9/package/", b"PK package")

    assert aip("models", "package", "cells", "--to", tmp_path / "it.zip") == 0

    assert (tmp_path / "it.zip").read_bytes() == b"PK package"


def test_terminal_asks_for_a_program_of_torch_and_brings_it(aip, platform, tmp_path, capfd):
    platform.answers("GET /api/v1/models/", {"results": [{"id": 3, "name": "cells"}], "next": None})
    platform.answers("GET /api/v1/models/3/versions/", {"results": [{"id": 9, "number": 2}], "next": None})
    platform.answers("POST /api/v1/model-versions/9/torch/", {"id": 4, "job": 12})
    platform.answers("GET /api/v1/model-versions/9/torch/", b"a program")

    assert aip("models", "torch", "cells", "--export") == 0
    assert "job 12" in "".join(capfd.readouterr())
    assert aip("models", "torch", "cells", "--to", tmp_path / "it.pt2") == 0

    assert (tmp_path / "it.pt2").read_bytes() == b"a program"

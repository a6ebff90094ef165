"""Each test has a data root of its own: rows are rolled back and numbered anew, files are not."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def data_root(settings, tmp_path_factory):
    settings.DATA_ROOT = tmp_path_factory.mktemp("data")
    return settings.DATA_ROOT

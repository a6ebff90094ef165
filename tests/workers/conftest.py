import pytest


@pytest.fixture(autouse=True)
def _own_data_root(settings, tmp_path):
    """Row numbers repeat from test to test, so each test has its own run directories."""
    settings.DATA_ROOT = tmp_path

import pytest

from inference.serving.models import Service
from tests.factories import models, work


@pytest.fixture
def machine(db):
    """A live machine with sixteen cores and no cards."""
    return work.node(cores=16)


@pytest.fixture
def service(alice, tmp_path):
    """A service of Alice's that has no server."""
    version = models.model_version(alice, tmp_path)
    return Service.objects.create(name="cells", slug="cells", owner=alice, model_version=version)

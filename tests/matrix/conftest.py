import pytest

from inference.serving import endpoints
from inference.video import analyses
from tests.factories import models, work
from tests.matrix import entry_points, world
from workers.core.models import VirtualCluster


@pytest.fixture
def ground(db, tmp_path, settings) -> world.World:
    """One of everything, and the people who ask for it."""
    settings.DATA_ROOT = tmp_path / "root"
    return world.make(tmp_path)


@pytest.fixture
def entry_point_ground(transactional_db, tmp_path, settings) -> entry_points.Ground:
    """The people, with a running job and a service of the owner; sockets read them from other threads."""
    settings.DATA_ROOT = tmp_path / "root"
    cluster = VirtualCluster.objects.get_or_create(name="default")[0]
    people = world.cast_of(cluster)
    owner = people["owner"]
    service = endpoints.create(user=owner, model_version=models.model_version(owner, tmp_path), name="finder")
    version = models.model_version(owner, tmp_path, name="watcher")
    stream = analyses.submit(user=owner, model_version=version, url="http://93.184.215.14/live")
    job = work.job(owner, cluster, state="running")
    work.run_dir(job).log.write_text("said\n")
    return entry_points.ground(people, {"service": service.slug, "stream": stream.pk, "pk": job.pk})

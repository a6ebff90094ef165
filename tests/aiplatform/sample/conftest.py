from __future__ import annotations

import pytest

from aiplatform.pages.sample import creation, data
from aiplatform.pages.sample.models import SampleProject
from tests.aiplatform.sample.steps import COUNTS, advance, answer, end_training
from tests.factories import work


@pytest.fixture(autouse=True)
def _few_images(monkeypatch):
    monkeypatch.setattr(data, "COUNTS", COUNTS)


@pytest.fixture
def node(db):
    return work.node(cores=4)


@pytest.fixture
def ready(alice, cluster, node, tmp_path) -> SampleProject:
    project = advance(creation.start(alice))
    end_training(project, tmp_path)
    project = advance(project)
    answer(project)
    return advance(project)

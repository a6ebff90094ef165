"""Homes with something in them."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from datasets.files import homes
from tests.files.helpers import Files


@pytest.fixture
def home(alice):
    """Alice's home."""
    return homes.home_of(alice)


def _client(person) -> Files:
    client = APIClient()
    client.force_login(person)
    return Files(client, person)


@pytest.fixture
def files(alice) -> Files:
    """The API of files as Alice calls it."""
    return _client(alice)


@pytest.fixture
def bobs(bob) -> Files:
    return _client(bob)


@pytest.fixture
def olgas(olga) -> Files:
    return _client(olga)

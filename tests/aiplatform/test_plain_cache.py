"""Nodes can write into the cache; what lies there runs nothing in the server that reads it."""

import pickle

import pytest
from django.core.cache.backends.redis import RedisCacheClient

from aiplatform import settings


class Evil:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was opened",))


def test_h01_redis_cache_holds_no_pickles():
    options = settings.CACHES["default"]["OPTIONS"]
    kept = RedisCacheClient(["redis://127.0.0.1:1/0"], **options)._serializer

    with pytest.raises(ValueError, match=r".*"):
        kept.loads(pickle.dumps(Evil()))
    assert kept.loads(kept.dumps({"at": 1.5, "p95_s": None})) == {"at": 1.5, "p95_s": None}

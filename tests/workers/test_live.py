"""News of jobs, through a real broker: who watches a group by Channels hears what is published to it."""

from __future__ import annotations

import asyncio

import pytest
from channels_redis.pubsub import RedisPubSubChannelLayer

from workers.core import live

pytestmark = pytest.mark.sockets("a broker of its own")


@pytest.mark.django_db
def test_live_nudge_reaches_a_subscriber(valkey_url, settings, monkeypatch, django_capture_on_commit_callbacks):
    config = {"hosts": [{"address": valkey_url, "socket_timeout": None}]}
    backend = "channels_redis.pubsub.RedisPubSubChannelLayer"
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": backend, "CONFIG": config}}
    layer = RedisPubSubChannelLayer(**config)
    monkeypatch.setattr(live, "get_channel_layer", lambda: layer)
    live._client.cache_clear()
    with django_capture_on_commit_callbacks() as waiting:
        live.nudge(7, log_bytes=12)

    async def watch() -> dict:
        channel = await layer.new_channel()
        await layer.group_add(live.job_group(7), channel)
        await asyncio.to_thread(waiting[0])
        try:
            return await asyncio.wait_for(layer.receive(channel), 20)
        finally:
            await layer.flush()

    heard = asyncio.run(watch())

    live._client().close()
    live._client.cache_clear()
    assert heard == {"type": "job.moved", "log_bytes": 12}

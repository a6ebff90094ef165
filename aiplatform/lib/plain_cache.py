"""Cache values as JSON: other machines write there, and a pickle could run code."""

from __future__ import annotations

import json
from typing import Any


class PlainSerializer:
    """For Django's RedisCache, in place of its pickles."""

    def dumps(self, value: Any) -> bytes:
        """Return UTF-8 JSON.

        Raises:
            TypeError: the value has no form in JSON.
        """
        return json.dumps(value).encode()

    def loads(self, data: bytes) -> Any:
        """Return the value.

        Raises:
            ValueError: it is no JSON.
        """
        return json.loads(data)

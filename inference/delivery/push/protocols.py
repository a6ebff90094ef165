"""All kinds of places, by the code that rows hold."""

from __future__ import annotations

from inference.delivery.push.fusion_director import FusionDirector
from inference.delivery.push.http_put import Put
from inference.delivery.push.oci import Oci
from inference.delivery.push.protocol import PushProtocol
from inference.delivery.push.s3 import S3
from inference.delivery.push.ssh import Ssh

PROTOCOLS: dict[str, PushProtocol] = {
    protocol.code: protocol for protocol in (Put(), S3(), Ssh(), Oci(), FusionDirector())
}

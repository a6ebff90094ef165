"""The interactive description of the API: Swagger UI, with the files that are installed with the platform.

It writes styles into the page; the policy of this page allows that, and still no other host. Its start script is a
file, so that no inline script is allowed.
"""

from __future__ import annotations

from csp.decorators import csp_update
from django.utils.decorators import method_decorator
from drf_spectacular.views import SpectacularSwaggerSplitView


@method_decorator(csp_update({"style-src": ["'unsafe-inline'"]}), name="dispatch")
class SwaggerView(SpectacularSwaggerSplitView):
    """Read the description and try requests."""

    template_name = "api_docs.html"

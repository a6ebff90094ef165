from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SampleConfig(AppConfig):
    name = "aiplatform.pages.sample"
    verbose_name = _("Sample project")

    def ready(self) -> None:
        from aiplatform.lib import sweeps
        from aiplatform.pages.home import guide
        from aiplatform.pages.home import sections as home_sections
        from aiplatform.pages.sample import creation, data, home, messages
        from datasets.services import sources
        from workers.jobs import listeners

        messages.register()
        sources.SOURCES.register(data.SOURCE)
        sweeps.register("sample.sweep")
        listeners.register(listeners.Listener("sample", creation.job_ended))
        home_sections.SECTIONS.register(home.SAMPLE)
        guide.SAMPLES.register(home.samples_of)

from django.apps import AppConfig


class FrameConfig(AppConfig):
    name = "aiplatform"

    def ready(self) -> None:
        from aiplatform import checks  # noqa: F401 - registers the system checks
        from aiplatform.celery import app  # noqa: F401 - makes it the current Celery app
        from aiplatform.lib import messages, plurals, process_startup
        from aiplatform.pages import sources
        from aiplatform.pages.home import page as home_page

        messages.compile_quietly()  # before any text is looked up
        plurals.set_names()
        sources.register()
        home_page.register()
        sources.guard_admin_site()
        process_startup.ended()

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class AccountsConfig(AppConfig):
    name = "accounts"
    verbose_name = _("Users")

    def ready(self) -> None:
        from accounts import messages as wordings
        from accounts import receivers, searching
        from accounts.access.permissions import PRESET_ROLES, Action
        from accounts.services.roles import PRESET_DESCRIPTIONS
        from aiplatform.lib import messages, palette, search, sweeps

        receivers.connect()
        wordings.register()
        sweeps.register("accounts.sweep")
        post_migrate.connect(self.keep_preset_roles, sender=self)
        post_migrate.connect(self.guard_the_trail, sender=self)
        sweeps.register("accounts.outbox")
        palette.register(
            palette.Command("users.new", _("New user"), "plus", Action.PEOPLE_MANAGE, "accounts:person-new"),
            palette.Command("account.settings", _("Settings"), "settings", Action.SELF_MANAGE, "accounts:settings"),
            palette.Command("account.tokens", _("API tokens"), "key", Action.SELF_MANAGE, "accounts:tokens"),
            palette.Command(
                "account.sign-out", _("Sign out"), "sign-out", Action.SELF_MANAGE, "accounts:logout", post=True
            ),
        )
        search.register("person", _("User"), "person", needs=Action.PEOPLE_MANAGE, find=searching.people)
        messages.register_texts(lambda: [*PRESET_ROLES, *PRESET_DESCRIPTIONS.values()])

    def keep_preset_roles(self, using: str, **more: Any) -> None:
        """Update the preset roles after every `migrate` to what this version of the platform can do."""
        from accounts.services import roles

        roles.update_presets(using=using)

    def guard_the_trail(self, using: str, **more: Any) -> None:
        """Create the audit trail's triggers after every `migrate`, as a changed table may have lost them."""
        from django.conf import settings

        from accounts.services import audit_triggers

        if settings.AUDIT_GUARDED:
            audit_triggers.guard(using=using)

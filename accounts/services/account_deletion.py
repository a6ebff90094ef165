"""Account deletion. What happens to work and data is decided first, then done in one transaction."""

from __future__ import annotations

from django.db import transaction
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.access import ownership
from accounts.models import OneTimeLink, User
from accounts.services import audit, ceiling, cluster_membership, second_factor
from accounts.services.people import NotYourself, keeping_an_administrator
from aiplatform.lib.errors import Invalid


def transfer(*, giver: User, taker: User, by: User) -> dict[str, int]:
    """Hand everything `giver` owns over to `taker`: kind → how many.

    A name the taker uses already gets the giver's name behind it.

    Raises:
        BeyondYou: one of the two may do more than `by`.
        Invalid: the taker is the giver, or cannot sign in.
    """
    ceiling.touch(by, giver)
    ceiling.touch(by, taker)
    if taker.pk == giver.pk or not taker.is_active or taker.deleted_at:
        raise Invalid(_("Choose an active account as the new owner."), field="taker")
    with transaction.atomic():
        moved = {key: count for key, count in ownership.transfer(giver, taker).items() if count}
        audit.record(by, "transferred", giver, to=taker.username, **moved)
    return moved


def delete(*, user: User, by: User, taker: User | None = None) -> None:
    """Delete an account: its work stops, its sessions, keys and rights end, its facts are erased.

    The row stays, so that histories keep a name and no later account gets the folders of the same name.

    Args:
        taker: who gets everything it owns; None: all stays under the deleted name, for operators to see.

    Raises:
        NotYourself, BeyondYou, FirstAdministrator, LastAdministrator, Invalid: nothing was done.
    """
    if user.pk == by.pk:
        raise NotYourself(_("You cannot delete your own account."))
    ceiling.touch(by, user)
    ceiling.stays(user)
    with keeping_an_administrator():
        stopped = ownership.stop_work(user, by)
        moved = transfer(giver=user, taker=taker, by=by) if taker else {}
        audit.record(by, "account_deleted", user, stopped=stopped, to=taker.username if taker else "", moved=moved)
        user.roles.clear()
        user.user_groups.clear()
        cluster_membership.remove(user, by=by)
        user.api_tokens.all().delete()
        user.ssh_keys.all().delete()
        user.named_secrets.all().delete()
        user.identities.all().delete()
        second_factor.switch_off(user, by=by)
        OneTimeLink.objects.filter(user=user).delete()
        user.nickname = user.phone = user.email = ""
        user.is_active, user.deleted_at = False, now()
        user.set_unusable_password()
        user.save()
    user.forget_actions()

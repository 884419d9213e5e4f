"""People who sign in by an OpenID provider."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import models
from django.db.models import Q


class ProviderIdentity(models.Model):
    """The person of an OpenID provider whom a user is: the provider's issuer, and its `sub` for the person.

    No e-mail address: a provider may give an address to somebody else, and a person may change it.
    """

    user = models.OneToOneField(User, primary_key=True, on_delete=models.CASCADE, related_name="provider_identity")
    issuer = models.TextField()
    subject = models.TextField()

    class Meta:
        db_table = "redrive_provider_identity"
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="one_user_of_a_provider_identity"),
            models.CheckConstraint(
                condition=~Q(issuer="") & ~Q(subject=""), name="provider_identity_has_issuer_and_subject"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subject} of {self.issuer}"

"""Compute the public URLs of the admin's pages, for notifications."""

from __future__ import annotations

from collections.abc import Callable

from django.urls import NoReverseMatch, reverse


def links(public_url: str) -> Callable[[str, str], str]:
    """Return a function that takes a model's name and a row's id, and returns the URL of the row's page in the admin.

    For an empty id, the function returns the URL of the list of the model's rows. For an empty name, it returns the
    URL of the dashboard. If `public_url` is empty, every URL is empty.
    """

    def link(model: str, row: str) -> str:
        if not public_url:
            return ""
        name = f"admin:reprocessing_{model}_{'change' if row else 'changelist'}" if model else "admin:index"
        try:
            return public_url + reverse(name, args=[row] if row else [])
        except NoReverseMatch:  # a project without this service's admin
            return ""

    return link

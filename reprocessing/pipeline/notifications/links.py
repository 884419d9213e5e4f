"""Compute the public URLs of the admin's pages, for notifications."""

from __future__ import annotations

from collections.abc import Callable

from django.urls import NoReverseMatch, reverse


def links(public_url: str) -> Callable[[str, str], str]:
    """Return a function that maps a model's name and a row's id to the URL of its page in the admin.

    Without an id, it returns the list's URL; without a name, the dashboard's. It returns an empty text if
    `public_url` is empty.
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

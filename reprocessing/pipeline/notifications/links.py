"""Compute the public URLs of the admin's pages, for notifications."""

from __future__ import annotations

from collections.abc import Callable

from django.urls import NoReverseMatch, reverse


def links(public_url: str) -> Callable[[str, str], str]:
    """Return a function that returns the URL of a page of the admin, for the name of a model and the id of a row.

    With an empty id, this function returns the URL of the model's list; with an empty name, that of the dashboard. If
    `public_url` is empty, it returns an empty text.
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

"""Public addresses of the admin's pages."""

from __future__ import annotations

from collections.abc import Callable

from django.urls import NoReverseMatch, reverse


def links(public_url: str) -> Callable[[str, str], str]:
    """Return a function that maps a model's name and a row's id to a URL (empty if there is no public URL)."""

    def link(model: str, row: str) -> str:
        if not public_url:
            return ""
        name = f"admin:reprocessing_{model}_{'change' if row else 'changelist'}" if model else "admin:index"
        try:
            return public_url + reverse(name, args=[row] if row else [])
        except NoReverseMatch:  # a project without this service's admin
            return ""

    return link

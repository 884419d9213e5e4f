"""Addresses of the admin's pages, as people outside reach them."""

from __future__ import annotations

from collections.abc import Callable

from django.urls import NoReverseMatch, reverse


def links(public_url: str) -> Callable[[str, str], str]:
    """A function from a page's model and the id of a row to its address; without a public URL there is none."""

    def link(model: str, row: str) -> str:
        if not public_url:
            return ""
        name = f"admin:reprocessing_{model}_{'change' if row else 'changelist'}" if model else "admin:index"
        try:
            return public_url + reverse(name, args=[row] if row else [])
        except NoReverseMatch:  # a project without this service's admin
            return ""

    return link

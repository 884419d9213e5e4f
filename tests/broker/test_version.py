"""The guard against a kombu that the containment was not proved on."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from redrive_service.broker.version import PROVED, KombuIsUnproved, require_proved_kombu


def test_the_installed_kombu_is_the_proved_one() -> None:
    assert version("kombu") == PROVED


def test_another_kombu_is_refused_with_the_way_out() -> None:
    with pytest.raises(KombuIsUnproved, match=rf"kombu 5\.8\.0 is installed.*Install kombu=={PROVED}, or run"):
        require_proved_kombu("5.8.0")

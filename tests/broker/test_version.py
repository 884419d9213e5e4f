"""The guard against a kombu that the containment was not proved on."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from redrive_service.broker.version import TESTED, UntestedKombu, require_tested_kombu


def test_the_installed_kombu_is_the_proved_one() -> None:
    assert version("kombu") == TESTED


def test_another_kombu_is_refused_with_the_way_out() -> None:
    with pytest.raises(UntestedKombu, match=rf"kombu 5\.8\.0 is installed.*Install kombu=={TESTED}, or run"):
        require_tested_kombu("5.8.0")

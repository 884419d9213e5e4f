"""Configure the Django app. When Django starts, load the payload keys of the settings, which encrypt messages."""

from __future__ import annotations

from django.apps import AppConfig


class ReprocessingConfig(AppConfig):
    """The application that captures messages from DLQs and redrives them."""

    name = "reprocessing"
    verbose_name = "Dead messages"

    def ready(self) -> None:
        from reprocessing import checks  # noqa: F401, PLC0415  # models are loaded only now
        from reprocessing.pipeline.payloads import key_ring  # noqa: PLC0415  # as above

        key_ring.install()

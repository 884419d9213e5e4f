"""The application's name for Django."""

from __future__ import annotations

from django.apps import AppConfig


class ReprocessingConfig(AppConfig):
    """The application that captures and redrives dead messages."""

    name = "reprocessing"
    verbose_name = "Dead letters"

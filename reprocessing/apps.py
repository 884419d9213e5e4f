"""The application's name for Django."""

from __future__ import annotations

from django.apps import AppConfig


class ReprocessingConfig(AppConfig):
    """Dead letters and their redrives."""

    name = "reprocessing"
    verbose_name = "Dead letters"

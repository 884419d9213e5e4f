"""The application's name for Django."""

from __future__ import annotations

from django.apps import AppConfig


class ReprocessingConfig(AppConfig):
    """The application that captures messages from DLQs and redrives them."""

    name = "reprocessing"
    verbose_name = "Dead messages"

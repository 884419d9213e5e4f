"""URLs of a sign-in: its start, and the callback to which the provider sends the browser."""

from __future__ import annotations

from django.urls import path

from redrive_service.oidc import backend, views

urlpatterns = [
    path("oidc/sign-in", views.begin, name="oidc_begin"),
    path("oidc/callback", views.callback, name=backend.CALLBACK),
]

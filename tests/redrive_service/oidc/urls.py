"""The project's addresses as they are where a provider is set."""

from redrive_service.oidc.urls import urlpatterns as of_the_provider
from redrive_service.urls import handler400, handler403, handler404
from redrive_service.urls import urlpatterns as always

__all__ = ["handler400", "handler403", "handler404", "urlpatterns"]

urlpatterns = [*always, *of_the_provider]

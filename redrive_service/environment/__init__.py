"""Read and check all environment variables of the service, before anything starts."""

from redrive_service.environment.environment import Environment, EnvironmentIsIncomplete, read
from redrive_service.environment.oidc import Oidc
from redrive_service.environment.web import SignIn

__all__ = ["Environment", "EnvironmentIsIncomplete", "Oidc", "SignIn", "read"]

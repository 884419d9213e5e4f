"""The service's environment variables: read and checked completely before anything starts."""

from redrive_service.environment.environment import Environment, EnvironmentIsIncomplete, read
from redrive_service.environment.oidc import Oidc
from redrive_service.environment.web import SignIn

__all__ = ["Environment", "EnvironmentIsIncomplete", "Oidc", "SignIn", "read"]

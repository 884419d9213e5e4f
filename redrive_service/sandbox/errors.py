"""The errors of the sandbox. Each error text says what to do."""

from __future__ import annotations


class SandboxError(Exception):
    """The sandbox cannot do what the user asked. The error's text says why, and what to do."""


class SandboxIsRunning(SandboxError):
    """Another process runs a sandbox in the same folder."""


class PortIsTaken(SandboxError):
    """Another program listens on a requested port."""


class ServerDidNotStart(SandboxError):
    """A server ended before it was ready, or was not ready in time."""


class PasswordDiffers(SandboxError):
    """PostgreSQL's data were created with another password than the password that is now in the sandbox's folder."""


class ServerNotFound(SandboxError):
    """The programs of a server were found neither in an installed Python package nor on the machine."""

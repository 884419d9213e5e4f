#!/usr/bin/env python
"""The service's command line."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run one command. Only `sandbox` runs without the service's environment: it is what makes one."""
    sandbox = sys.argv[1:2] == ["sandbox"]
    module = "redrive_service.sandbox.settings" if sandbox else "redrive_service.settings"
    os.environ["DJANGO_SETTINGS_MODULE"] = module

    from django.core.exceptions import ImproperlyConfigured  # noqa: PLC0415  # after the choice of settings
    from django.core.management import execute_from_command_line  # noqa: PLC0415  # as above

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()

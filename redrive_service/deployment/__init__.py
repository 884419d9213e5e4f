"""Make the files of a production deployment for `manage.py deployment_files`: for Compose, Kubernetes or ECS."""

from redrive_service.deployment.files import Platform, deployment_files
from redrive_service.deployment.installation import Installation

__all__ = ["Installation", "Platform", "deployment_files"]

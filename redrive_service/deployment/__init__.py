"""Files for a production deployment, from one description of the processes: `manage.py deployment_files`."""

from redrive_service.deployment.files import Platform, deployment_files
from redrive_service.deployment.installation import Installation

__all__ = ["Installation", "Platform", "deployment_files"]

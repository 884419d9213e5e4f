"""Gateways to AWS services other than SQS: Lambda, SNS, EventBridge, CloudWatch, KMS and S3."""

from reprocessing.gateways.aws_services.lambda_invoke import Invocations
from reprocessing.gateways.aws_services.s3_head import are_gone
from reprocessing.gateways.aws_services.sns_eventbridge_publish import publish, put

__all__ = ["Invocations", "are_gone", "publish", "put"]

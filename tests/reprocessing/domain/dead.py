"""Dead letters that did not come from a source queue, as AWS documents them."""

from __future__ import annotations

from dataclasses import dataclass, field

from reprocessing.domain.message.envelope import Attribute, Attributes
from reprocessing.domain.sources.failed_delivery import FailedDelivery, recognise

TOPIC = "arn:aws:sns:us-west-2:123456789012:MyTopic"
SUBSCRIPTION = f"{TOPIC}:c9135db0-26c4-47ec-8998-413945fb5a96"
FUNCTION = "arn:aws:lambda:us-east-2:123456789012:function:my-function"
RULE = "arn:aws:events:us-east-1:123456789012:rule/shop-bus/orders"
TARGET = "arn:aws:lambda:us-east-1:123456789012:function:ship"
SCHEDULE = "arn:aws:scheduler:us-west-2:123456789012:schedule/default/DLQ-test"
SEND_MESSAGE = "arn:aws:scheduler:::aws-sdk:sqs:sendMessage"

#: https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html
NOTIFICATION = f"""{{
  "Type" : "Notification",
  "MessageId" : "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
  "TopicArn" : "{TOPIC}",
  "Subject" : "My First Message",
  "Message" : "Hello \\u0077orld! \\"caf\u00e9\\"",
  "Timestamp" : "2012-05-02T00:54:06.655Z",
  "SignatureVersion" : "1",
  "Signature" : "EXAMPLEw6JRNwm1LFQL4ICB0bnXrdB8ClRMTQFGBqwLpGbM78tJ4etTwC5zU7O3tS6tGpey3ejedNdOJ",
  "SigningCertURL" : "https://sns.us-west-2.amazonaws.com/SimpleNotificationService-f3ecfb7224c7233fe7bb5f59f96de52f.pem",
  "UnsubscribeURL" : "https://sns.us-west-2.amazonaws.com/?Action=Unsubscribe&SubscriptionArn={SUBSCRIPTION}",
  "MessageAttributes" : {{
    "kind" : {{"Type":"String","Value":"order"}},
    "sum" : {{"Type":"Number","Value":"12.50"}},
    "tags" : {{"Type":"String.Array","Value":"[\\"a\\"]"}},
    "raw" : {{"Type":"Binary","Value":"AgME"}}
  }}
}}""".encode()

PAYLOAD = b'{"total": 1.00, "id" : 123456789012345678901234567890, "who":"\\u00e9\\/", "b":1, "a":[ ]}'
#: https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
RECORD = (
    b'{"version": "1.0", "timestamp": "2019-11-14T18:16:05.568Z", "requestContext": {"requestId": "e4b46cbf-b738-8880",'
    b' "functionArn": "' + FUNCTION.encode() + b':$LATEST", "condition": "RetriesExhausted",'
    b' "approximateInvokeCount": 3}, "requestPayload": ' + PAYLOAD + b' , "responseContext": {"statusCode": 200,'
    b' "executedVersion": "$LATEST", "functionError": "Unhandled"}, "responsePayload": {"errorType": "ValueError",'
    b' "errorMessage": "card 4111"}}'
)
EVENT = (
    b'{"version":"0","id":"17554ea1","detail-type":"order.paid","source":"shop.orders","account":"123456789012",'
    b'"time":"2026-01-02T03:04:05Z","region":"us-east-1","resources":["arn:aws:s3:::a"],"detail":' + PAYLOAD + b"}"
)
#: https://docs.aws.amazon.com/scheduler/latest/UserGuide/configuring-schedule-dlq.html
REQUEST = (
    b'{"MessageBody":"Hello, \\"w\\u00f6rld\\"!",'
    b'"QueueUrl":"https://sqs.us-west-2.amazonaws.com/123456789012/does-not-exist"}'
)


def texts(**values: str) -> dict[str, Attribute]:
    return {name: Attribute("String", value) for name, value in values.items()}


OF_LAMBDA = texts(RequestID="e4b46cbf", ErrorMessage="it broke\nTraceback") | {"ErrorCode": Attribute("Number", "200")}
OF_A_RULE = texts(
    RULE_ARN=RULE, TARGET_ARN=TARGET, ERROR_CODE="NO_PERMISSIONS", ERROR_MESSAGE="not allowed", RETRY_ATTEMPTS="0"
)
OF_A_SCHEDULE = texts(
    SCHEDULE_ARN=SCHEDULE, TARGET_ARN=SEND_MESSAGE, ERROR_CODE="AWS.SimpleQueueService.NonExistentQueue",
    ERROR_MESSAGE="The specified queue does not exist.", EXECUTION_ID="ad06616e51cdf74a",
    IS_PAYLOAD_TRUNCATED="false", RETRY_ATTEMPTS="0", SCHEDULED_TIME="2022-05-14T01:12:00Z",
)  # fmt: skip


@dataclass(frozen=True)
class Dead:
    body: bytes
    attributes: Attributes = field(default_factory=dict)

    def shape(self, **system: str) -> FailedDelivery | None:
        return recognise(self.body, self.attributes, system)


LETTERS = {
    "lambda": Dead(PAYLOAD, OF_LAMBDA), "lambda_destination": Dead(RECORD), "sns": Dead(NOTIFICATION),
    "eventbridge": Dead(EVENT, OF_A_RULE), "scheduler": Dead(REQUEST, OF_A_SCHEDULE),
}  # fmt: skip

"""Bodies that look like something else: encodings, formats, other people's envelopes."""

from __future__ import annotations

import base64
import gzip
import pickle
import zlib
from collections.abc import Iterator
from typing import Final

from tests.proof.poison.corpus.payload import Payload

_PICKLE: Final = base64.b64encode(pickle.dumps({"a": ("pickled", 1)}, protocol=0)).decode()
#: Opened, it would run a command.
_HARMFUL_PICKLE: Final = base64.b64encode(b"cposix\nsystem\n(S'echo harmful-pickle'\ntR.").decode()


def some() -> Iterator[Payload]:
    for name, body in (_ENCODED | _FORMATS).items():
        yield Payload(f"disguise: {name}", body)
    for number in (1, 2, 3):
        yield Payload(
            f"disguise: equal bodies, {number}", '{"order": "equal-bodies"}', {"number": ("Number", str(number))}
        )


_ENCODED: Final = {
    "base64": base64.b64encode(b"a plain text in base64").decode(),
    "base64 of JSON": base64.b64encode(b'{"key": "json in base64"}').decode(),
    "base64 of no UTF-8": base64.b64encode(bytes(range(256))).decode(),
    "base64 without padding": "YSBwbGFpbiB0ZXh0IHdpdGhvdXQgcGFkZGluZw",
    "base64 with blanks": " YWJj\nZGVm\r\nZ2hp ",
    "base64 of URLs": "_-_-_-_-YWJjZGVm",
    "base64 twice": base64.b64encode(base64.b64encode(b"twice encoded text")).decode(),
    "gzip in base64": base64.b64encode(gzip.compress(b"zipped" * 1_000, mtime=0)).decode(),
    "zlib bomb in base64": base64.b64encode(zlib.compress(b"0" * 100_000_000)).decode(),
    "pickle": "(dp0\nVa\np1\n(Vpickled text\np2\nI1\ntp3\ns.",
    "pickle in base64": _PICKLE,
    "harmful pickle in base64": _HARMFUL_PICKLE,
    "hexadecimal": "deadbeef" * 10,
    "percent encoding": "a%20body%00in%25percents",
    "quoted printable": "=46=6F=6F=0Aquoted printable",
    "UTF-7": "+AHs-+ACI-utf seven",
    "a data URL": "data:text/html;base64,PHNjcmlwdD4=",
    "a JWT": "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.",
    "PEM": "-----BEGIN CERTIFICATE-----\nMIIBnot-a-certificate\n-----END CERTIFICATE-----\n",
}
_FORMATS: Final = {
    "YAML": "key: value in yaml\nlist:\n  - 1\n",
    "YAML that makes objects": "!!python/object/apply:os.system ['echo yaml-object']",
    "YAML bomb": 'a: &a ["lol"]\nb: &b [*a,*a,*a]\nc: [*b,*b,*b]\n',
    "XML": '<?xml version="1.0"?><order id="7">of XML</order>',
    "XML bomb": '<!DOCTYPE l [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;">]><l>&b;</l>',
    "XML that reads files": '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/hostname">]><x>&e;</x>',
    "an answer of SQS": "<ReceiveMessageResponse><Body>nested answer</Body></ReceiveMessageResponse>",
    "a request of SQS": '{"QueueUrl": "http://127.0.0.1/0/q", "Entries": [{"Id": "0", "MessageBody": "x"}]}',
    "CSV": "id,amount\r\n7,1.10\r\n",
    "CSV with a formula": '=HYPERLINK("http://127.0.0.1","formula")',
    "form fields": "Action=DeleteQueue&Version=2012-11-05&QueueUrl=form",
    "multipart": '--b\r\nContent-Disposition: form-data; name="f"\r\n\r\nmultipart\r\n--b--\r\n',
    "an HTTP request": "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nsmuggled",
    "chunked": "5\r\nhello\r\n0\r\n\r\nchunked end",
    "server-sent events": "event: message\ndata: server sent\n\n",
    "a mail": "From: a@b\r\nSubject: mail\r\n\r\nbody of a mail\r\n.\r\n",
    "msgpack in base64": "gqFhAaFiwsDAwMDAwMA=",
    "Avro's magic": "Obj avro.schema in text",
    "Sidekiq": '{"class": "Job", "args": ["sidekiq"], "jid": "b4a577edbccf1d805744efa9", "retry": true}',
    "Dramatiq": '{"queue_name": "q", "actor_name": "a", "args": ["dramatiq"], "kwargs": {}, "options": {}}',
    "Resque of ActiveJob": '{"job_class": "ActionMailer", "job_id": "activejob", "arguments": [{"_aj_globalid": "x"}]}',
    "a CloudEvent": '{"specversion": "1.0", "id": "cloud-event", "type": "t", "source": "/s", "data": {}}',
    "an extended client's pointer": (
        '["software.amazon.payloadoffloading.PayloadS3Pointer", {"s3BucketName": "bucket", "s3Key": "extended-client"}]'
    ),
    "an old extended client's pointer": (
        '["com.amazon.sqs.javamessaging.MessageS3Pointer", {"s3BucketName": "old-bucket", "s3Key": "pointer"}]'
    ),
}

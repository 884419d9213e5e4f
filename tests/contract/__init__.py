"""The contract of SQS: one suite, run against our local SQS and against moto. AWS's documentation decides."""

"""Store rules, and rate classes (a rate and a backoff that a rule gives to letters); write the rules' decisions."""

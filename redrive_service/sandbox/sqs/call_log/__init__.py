"""The call log: every request, its answer, and its refused entries."""

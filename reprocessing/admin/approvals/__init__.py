"""Admin pages of approvals: the list of requests, and the pages on which a second person decides about a request."""

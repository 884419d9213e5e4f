"""AWS's own redrive of our DLQs, and when AWS was last asked about it."""

"""Floor 3, acts: one verb a file, in the order a letter meets them. Stages return; only doors enqueue."""

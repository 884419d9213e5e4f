"""What AWS does by itself to messages of ours, and when it was asked about that."""

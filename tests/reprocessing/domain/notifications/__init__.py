"""What a person is told of."""

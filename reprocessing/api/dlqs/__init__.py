"""Operations of the API that list DLQs and show their status."""

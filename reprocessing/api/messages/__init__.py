"""Operations of the API that list messages, and show their history and bodies."""

"""Operations of the API that list, enable and disable rules."""

"""Operations of the API on requests for approval by a second person."""

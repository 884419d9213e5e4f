"""Operations of the API that stop and resume redrive."""

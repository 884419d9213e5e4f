"""Operations of the API that plan, start, show, pause, resume and abort runs."""

"""Operations of the API that release, discard and restore messages: by redrive id, or all that match a filter."""

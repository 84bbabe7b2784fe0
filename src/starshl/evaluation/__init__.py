"""Rankings and relevance in, numbers out; blind to every method."""

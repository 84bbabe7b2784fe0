"""Collections in one call, of pictures, texts or vectors; and more pictures or texts for those that exist."""

"""The vectors and texts of chunks, and the one owner of the Chroma package."""

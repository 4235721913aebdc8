"""The vector store: vectors and texts of chunks, in Chroma."""

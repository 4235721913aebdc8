"""Chroma, which follows the published index (`follower`) and answers retrieval mode `vector`."""

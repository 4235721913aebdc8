"""How an ingest runs: the queue, the steps in order (`pipeline`), progress and recovery."""

"""The questions about this project's source, which the first start ingests.

`.codeinfoignore` names this file: a passage that asks a question does not answer it.
"""

OWN_EXAMPLES = (
    "How does a chat answer get from the model to the page?",
    "What happens to half-read files when an ingest run is killed?",
    "Where is the distance cutoff applied to search results?",
)

"""What of the suite runs on PostgreSQL or MongoDB, Redis and Chroma's server: minutes of it.

Chosen is what a database may answer differently: locks, conditional updates, constraints, JSON, odd
text, order. Not chosen is what looks at SQLite's file itself (the kills), and what meets no
database (chunking, parts, providers, pages). Chroma's server follows what two servers publish.
"""

CHOSEN = (
    # Notices from process to process, over Redis
    "tests/stores",
    # The lists: cursors, order, bulk changes, what is refused
    "tests/conversations/test_conversations_api.py",
    # Full text, in any case and alphabet; subqueries of the list of conversations
    "tests/conversations/test_searching.py",
    # Whole tags in a text; a unique name without an owner; ratings by subquery
    "tests/conversations/test_tags.py",
    "tests/conversations/test_presets.py",
    "tests/conversations/test_ratings.py",
    # The forms of the admin: rows of other tables to choose from
    "tests/site/test_admin_forms.py",
    # The branch that is followed: what home and the palette list
    "tests/conversations/test_switches.py",
    # The palette: paths by expression and rank, symbols, lines
    "tests/site/test_palette.py",
    # The search page and all lists, for any text; what a scope leaves out, and what it offers
    "tests/browse/test_search_box.py",
    "tests/browse/test_hostile_box.py",
    "tests/tools/test_nested_areas.py",
    "tests/conversations/test_scope.py",
    # The chat's door, and the run behind it: one live run in a conversation, its heart, its end
    "tests/conversations/test_chat_api.py",
    "tests/conversations/test_runs.py",
    # An ingest from end to end, and what is refused at its door
    "tests/ingest/test_run.py",
    "tests/ingest/test_start.py",
    # Automatic runs: rows by paths, counts, what is deleted
    "tests/ingest/test_updates.py",
    # Fifty racing starts, claims that race; not SQLite's own lock
    "tests/ingest/test_faults.py",
    "--deselect=tests/ingest/test_faults.py::test_a_locked_database_is_503_with_retry_after",
    # No write that leaves its table; cancel, recovery and the model lock in a thousand orders
    "tests/core/test_writes.py",
    "tests/ingest/test_interleaved.py",
    # Search by vectors and words, on live rows only
    "tests/tools/test_api.py",
    # A refusal changes nothing; a NUL or half a character is no bug
    "tests/core/test_refusals.py",
    "tests/core/test_fuzz.py::test_no_field_however_odd_breaks_a_route",
)

"""What an answer looks like: its text as safe HTML, its citations, its steps. Pure: no rows are
written here and no sockets held."""

"""One file a version; each knows only the tables as they were then."""

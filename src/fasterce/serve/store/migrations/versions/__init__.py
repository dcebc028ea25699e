"""One file per version; each knows only the tables as they were then."""

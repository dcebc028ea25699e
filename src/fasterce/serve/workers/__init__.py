"""Worker processes that explain, and the `Dispatcher` in front of them; only `explain` and what it imports load the model."""

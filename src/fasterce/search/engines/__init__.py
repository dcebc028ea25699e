"""What searches, by the option `engine`; each module has `VARIANTS`, the searches of the methods, and `rows_at_once`."""

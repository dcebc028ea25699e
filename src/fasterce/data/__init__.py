"""Tables and what is known about them: schema, dtypes, statistics, and the codes the search works on."""

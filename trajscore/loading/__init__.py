"""From a table or a log to predictors, outcomes and groups, with notes on what was guessed."""

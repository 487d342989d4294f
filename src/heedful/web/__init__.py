"""`heedful serve`: every run and every instance in the browser, and a playground.

library     which runs there are, and what their small files say
results     rows of the experiments, read by DuckDB: only the columns and rows that a page needs
texts       the words behind a row
recent      what was read or answered lately, kept
inference   the models: the file that leads to torch, and only when someone asks a model something
self_attention   every head of a model on one text, and what the model says when heads are changed
question    a question to a model: its deadline, its end when nobody waits, and the queue in front of it
measures    what can be drawn: names, ranges, and a sentence on how to read each
figures, sparkline   the report's figures, and small ones as SVG
verdicts    the report's verdicts of one run, and its headline's grade of many
overview, run_page, words_page, experiment_page, instance_page, playground, heads_page   one address each: data -> page
answer      a page or its JSON twin
guard       hosts, headers and sizes
app         all of it together
"""

"""`heedful serve`: every run and every instance in the browser, and a playground.

library     which runs there are, and what their small files say
results     rows of the experiments, read by DuckDB: only the columns and rows that a page needs
texts       the words behind a row
live        the models: the only file that leads to torch, and only when someone asks a model something
measures    what can be drawn: names, ranges, and a sentence on how to read each
charts      figures as SVG, drawn here, so that a page works without script
judged, grades   the report's verdicts of one run, and its headline's grade of many
overview, run_page, words_page, experiment_page, instance_page, playground   one address each: data -> page
answer      a page or its JSON twin
guard       hosts, headers and sizes
app         all of it together
"""

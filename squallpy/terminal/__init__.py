"""The command line: data go to stdout, messages to stderr.

cli          the commands, which import nothing heavy
run          a run, from its options
interrupt    Ctrl-C, once and twice
failures     errors in one line, and the exit status
doctor       checks of the requirements of a run
submit       a run by way of spark-submit
submitted    the program that spark-submit runs
script       a file, stdin, or the text of -c
output       results and changes to stdout
table        rows as aligned text
live_table   the result as a table that changes
fit_columns  columns that fit a terminal
screen       the abilities of a terminal
progress     one line on stderr that erases itself
"""

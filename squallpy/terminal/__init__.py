"""The command line: data go to stdout, messages to stderr.

cli                 the commands, which import nothing heavy
run_command         a run, from its options
interrupt           Ctrl-C, once and twice
failures            errors in one line, and the exit status
doctor              checks of the requirements of a run
submit_command      a run by way of spark-submit
spark_main          the program that spark-submit runs
script_argument     a file, stdin, or the text of -c
stdout_sinks        results and changes to stdout
text_table          rows as aligned text
live_table          the result as a table that changes
fit_columns         columns that fit a terminal
terminal_detection  the abilities of a terminal
progress            one line on stderr that erases itself
"""

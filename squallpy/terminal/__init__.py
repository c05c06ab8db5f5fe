"""The command line: data go to stdout, messages to stderr.

cli                 the commands, which import nothing heavy
run_command         a run, from its options
interrupt           Ctrl-C, once and twice
failures            errors in one line, and the exit status; stderr_lines is what all lines on stderr go through
doctor              checks of the requirements of a run
shell_command       `squall` without a command: statements of -c, of stdin, or typed
shell               a session, and statements and dot commands one by one
statement_reader    lines → statements and commands, as they become complete
dot_commands        .tables, .mode, … with psql's names
result_printer      results in the format of .mode, cut to the terminal
prompt              the prompt, with history, colours and completion
interactive_shell   the shell at a prompt: live queries, Ctrl-C
worker              the thread in which statements run there
completion          what may follow a text that is typed
sql_words           the words of such a text, for colours
view_watch          a view as a table that changes
batch_relay         reports of batches for what shows them
submit_command      a run by way of spark-submit
ui_command          the page of a session; serve_command, its views by Flight SQL; served_session, until Ctrl-C
slots_command       replication slots that runs have left behind
spark_main          the program that spark-submit runs
script_argument     a file, stdin, or the text of -c
stdout_sinks        results and changes to stdout
text_table          rows as aligned text
live_table          the result as a table that changes
fit_columns         columns that fit a terminal
terminal_detection  the abilities of a terminal
progress            one line on stderr that erases itself; event_logging, a line for each event
"""

"""The command line: stdout is data, stderr is talk.

cli        the commands, which import nothing heavy      output     results and changes to stdout
run        a run put together from its options           live       the result as a table that changes
interrupt  Ctrl-C, once and twice                        table      rows as aligned text
failures   what went wrong, in one line and a status     progress   one line on stderr that erases itself
doctor     is everything here that a run needs?          submit     a run by way of spark-submit
submitted  what spark-submit then runs                   script     a file, stdin, or the text of -c
fit        columns that fit a terminal          screen     what a terminal can do
"""

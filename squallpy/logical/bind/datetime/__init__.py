"""Dates, timestamps and intervals: functions, arithmetic and format patterns."""

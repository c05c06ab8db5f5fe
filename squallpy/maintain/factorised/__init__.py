"""Factorised view maintenance (F-IVM, `fivm-on-flink`): statistics over a join, kept in one tree of views."""

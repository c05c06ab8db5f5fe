"""Ibis' own tests of backends over ours: pytest -p tests.ibis_suite.plugin --pyargs ibis.backends.tests -m squall"""

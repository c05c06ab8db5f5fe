"""The backend of Ibis, `ibis.squall.connect()`: expressions compiled to our SQL, over a session."""

from squallpy.ibis_backend.backend import Backend

__all__ = ["Backend"]

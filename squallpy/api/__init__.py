"""The Python interface: sessions, streams, views, and what others see of them."""

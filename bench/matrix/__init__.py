"""Matrix programs kept fresh, and what they are measured beside."""

import squallpy as squallpy  # before numpy: tells BLAS's idle threads to sleep, which else hold up whoever comes next

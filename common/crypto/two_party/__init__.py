"""A function of two parties' secrets, of which both learn the result and nothing else [Yao86]."""

"""Small web pages of the services: one server, one door, one look.

`exchange` has requests and responses, `server` sockets and their limits, `sessions` login, `site`
the way of a request to its page, `pages` escaped HTML.
"""

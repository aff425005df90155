"""Small web pages of the services: one server, one door, one look.

`exchange` has requests and responses, `server` the sockets and their limits, `sessions` who is let
in, `site` which request reaches which page, `feed` live news, `pages` HTML that is escaped.
"""

"""Items: their JSON text, system properties, resource ids, id rules, time to live and partial updates.

Everything here is pure: values in, values out, and errors from the table for what a client got wrong.
"""

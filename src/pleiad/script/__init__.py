"""JavaScript of clients: a sandbox in processes of its own, and the API that scripts find in it.

Nothing here knows the database: a script's operations come out as JSON, and their results go in as JSON.
"""

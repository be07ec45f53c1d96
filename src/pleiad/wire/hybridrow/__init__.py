"""HybridRow rows in RecordIO streams: the form of the .NET client's batches.

`schema` describes what columns a row has, `row` reads and writes the rows of any description, and `recordio` puts
rows into a stream.
"""
